// The live page: receives the launcher's messages (server-sent events) and passes each part to the code that draws
// it. A report has one message inside and no launcher. Texts of a program are set as text, never as markup.

import { drawComparison, meanOf, onOtherRun } from './compare.js';
import { Curves } from './curves/curves.js';
import { drawEnd, drawFacts, drawState, drawTroubles, notice } from './facts.js';
import { Log } from './log.js';
import { drawMembership } from './membership.js';
import { Ranks } from './ranks/ranks.js';
import { Strip } from './ranks/strip.js';
import { Timeline } from './ranks/timeline.js';

const $ = (id) => document.getElementById(id);
const curves = new Curves($('curves'), $('no-curves'), $('smoothing'), $('smoothing-value'));
const timeline = new Timeline($('timeline'), $('timeline-note'), $('timeline-steps'));
const log = new Log($('log'), $('log-rank'));
const strip = new Strip($('strip'), $('strip-measure'), $('strip-sentence'), (rank) => log.show(rank));
const table = new Ranks($('rank-head'), $('ranks'), $('slowest'), () =>
  timeline.order(table.ordered(last.ranks)),
);

// What scrolls has to scroll with the keyboard, too.
for (const part of document.querySelectorAll('.scroll, #log')) part.tabIndex = 0;

/** The whole state: the curves of all messages, the rest of the last one. */
let last = { job: null, ranks: [], curves: new Map() };
let other = null;

function draw(message) {
  const { job, ranks, isWhole } = message;
  if (isWhole) for (const part of [curves, timeline, log]) part.clear();
  last = { job, ranks, curves: isWhole ? new Map() : last.curves };
  for (const [name, part] of Object.entries(message.curves)) {
    last.curves.set(name, extended(last.curves.get(name), part));
  }
  const culprit = job.end?.culprit?.rank ?? null;
  curves.add(message.curves);
  const { troubles } = curves;
  drawJob(job, ranks, troubles);
  table.draw(ranks, culprit);
  strip.draw(ranks, culprit);
  timeline.add(message.spans, table.ordered(ranks));
  log.add(message.lines, ranks);
  if (other) drawComparison($('compare-head'), $('compare-rows'), last, other);
}

function extended(curve, { from, x, y, bad }) {
  const known = curve ?? { from: 0, x: [], y: [] };
  return { from: 0, x: [...known.x.slice(0, from), ...x], y: [...known.y.slice(0, from), ...y], bad };
}

function drawJob(job, ranks, troubles) {
  const { end } = job;
  const [kind, state] = !end
    ? ['running', 'running']
    : end.exitCode === 0
      ? ['ended', 'ended']
      : ['failed', 'failed'];
  const sign = troubles.some(({ isOpen }) => isOpen) ? '⚠ ' : '';
  document.title = `${sign}${end ? state : `step ${job.step ?? '–'}`} · ringwise`;
  $('title').textContent = job.title;
  drawState(kind, state);
  drawFacts(job, ranks, curves.last('loss'), meanOf(last.curves.get('samples/s')));
  drawEnd(job);
  drawMembership(job);
  drawTroubles(troubles);
}

onOtherRun({ input: $('compare-file'), end: $('compare-end'), message: $('compare-message') }, (message) => {
  other = message;
  $('compare').hidden = !other;
  curves.compare(other?.curves ?? new Map());
  if (other) drawComparison($('compare-head'), $('compare-rows'), last, other);
});

const recorded = $('recorded');
if (recorded) {
  const message = JSON.parse(recorded.textContent);
  draw(message);
  if (!message.job.end) {
    drawState('lost', 'no end recorded');
    notice(
      'lost',
      'The launcher wrote this report while the job ran, and no later one: it runs still, or was killed.',
    );
  }
} else {
  const source = new EventSource('events');
  source.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    draw(message);
    if (message.job.end) source.close();
  };
  source.onerror = () => {
    drawState('lost', 'no connection');
    notice(
      'lost',
      'The launcher does not answer: it has ended, or cannot be reached. This page tries again.',
    );
  };
}
