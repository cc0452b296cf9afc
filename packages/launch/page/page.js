// The live page: receives the launcher's messages (server-sent events) and passes each part to the code that draws
// it. Texts of a program are set as text, never as markup.

import { Curves } from './curves.js';
import { Log } from './log.js';
import { byteText, drawRanks, durationText, numberText } from './ranks.js';
import { Timeline } from './timeline.js';

const $ = (id) => document.getElementById(id);
const curves = new Curves($('curves'), $('no-curves'));
const timeline = new Timeline($('timeline'), $('timeline-note'), $('timeline-steps'));
const log = new Log($('log'), $('log-rank'));

const source = new EventSource('events');

source.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  const { job, ranks, isWhole } = message;
  if (isWhole) for (const part of [curves, timeline, log]) part.clear();
  drawJob(job, ranks);
  drawRanks($('rank-head'), $('ranks'), ranks);
  curves.add(message.curves);
  timeline.add(message.spans, ranks);
  log.add(message.lines, ranks);
  if (job.end) source.close();
};

source.onerror = () => {
  setState('lost', 'no connection');
  notice('lost', 'The launcher does not answer: it has ended, or cannot be reached. This page tries again.');
};

function drawJob(job, ranks) {
  document.title = `${job.end ? (job.end.exitCode === 0 ? 'ended' : 'failed') : `step ${job.step ?? '–'}`} · ringwise`;
  $('title').textContent = job.title;
  facts(job, ranks);
  const duration = durationText(job.elapsedMs);
  if (!job.end) {
    setState('running', 'running');
    if (job.why) notice('lost', job.why);
    else $('notice').hidden = true;
  } else if (job.end.exitCode === 0) {
    setState('ended', 'ended');
    notice(
      'ended',
      `The job has ended well after ${duration}. The launcher is gone; this page keeps what it has.`,
    );
  } else {
    setState('failed', 'failed');
    notice(
      'failed',
      job.end.text ?? `The job has ended with exit code ${job.end.exitCode} after ${duration}.`,
    );
  }
}

function setState(kind, text) {
  $('state').className = `badge ${kind}`;
  $('state').textContent = text;
}

function notice(kind, text) {
  const element = $('notice');
  element.hidden = false;
  element.className = kind;
  element.textContent = text;
}

function facts(job, ranks) {
  const memory = ranks.reduce((sum, { memoryBytes }) => sum + (memoryBytes ?? 0), 0);
  const entries = [
    ['step', numberText(job.step)],
    ['loss', numberText(job.loss)],
    ['samples/s', numberText(job.samplesPerSecond)],
    [job.hosts > 1 ? `ranks on ${job.hosts} hosts` : 'ranks', numberText(job.worldSize)],
    ['memory', memory > 0 ? byteText(memory) : '–'],
    ['restarts', numberText(job.restarts)],
    ['elapsed', durationText(job.elapsedMs)],
  ];
  $('facts').replaceChildren(
    ...entries.map(([name, value]) => {
      const pair = document.createElement('div');
      pair.append(Object.assign(document.createElement('dt'), { textContent: name }));
      pair.append(Object.assign(document.createElement('dd'), { textContent: value }));
      return pair;
    }),
  );
}
