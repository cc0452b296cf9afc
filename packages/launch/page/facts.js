// The head of the page: how far the job is, its key figures, how it ended, and what is wrong.

import { element, setText } from './element.js';
import { byteText, durationText, numberText } from './format.js';

const $ = (id) => document.getElementById(id);

export function drawFacts(job, ranks, loss, meanThroughput) {
  const memory = ranks.reduce((sum, { memoryBytes }) => sum + (memoryBytes ?? 0), 0);
  const entries = [
    ['step', ofTotal(job.step, job.steps)],
    ...(job.epoch === null ? [] : [['epoch', ofTotal(Math.floor(job.epoch) + 1, job.epochs)]]),
    ...(job.etaMs === null ? [] : [['time left', `about ${durationText(job.etaMs)}`]]),
    ['elapsed', durationText(job.elapsedMs)],
    ['loss', loss ?? '–', /NaN|Infinity/.test(loss) ? 'bad' : ''],
    job.end
      ? ['mean samples/s', numberText(meanThroughput)]
      : ['samples/s', numberText(job.samplesPerSecond)],
    [job.hosts > 1 ? `ranks on ${job.hosts} hosts` : 'ranks', numberText(job.worldSize)],
    ['memory', memory > 0 ? byteText(memory) : '–'],
    ...(job.restarts > 0 ? [['restarts', numberText(job.restarts)]] : []),
  ];
  $('facts').replaceChildren(
    ...entries.map(([name, value, className = '']) =>
      element('div', {}, element('dt', {}, name), element('dd', { className }, value)),
    ),
  );
  const bar = $('progress');
  bar.hidden = job.done === null;
  if (job.done === null) return;
  bar.setAttribute('aria-valuenow', `${Math.round(100 * job.done)}`);
  bar.firstElementChild.style.width = `${100 * job.done}%`;
}

const ofTotal = (value, total) => `${numberText(value)}${total ? ` of ${numberText(total)}` : ''}`;

export function drawState(kind, text) {
  $('state').className = `badge ${kind}`;
  setText($('state'), text);
}

/** Shows how the job ended; for a failure the rank with the root cause and its error. Otherwise why it restarted. */
export function drawEnd({ end, why, elapsedMs, worldSize }) {
  const duration = durationText(elapsedMs);
  if (!end) return notice(why ? 'lost' : null, why ?? '');
  if (end.exitCode === 0) return notice('ended', `The job has ended well after ${duration}.`);
  const { culprit } = end;
  if (!culprit)
    return notice(
      'failed',
      end.text ?? `The job has ended with exit code ${end.exitCode} after ${duration}.`,
    );
  const where = culprit.error === null ? '' : culprit.at === null ? 'thrown ' : `thrown at ${culprit.at} `;
  notice(
    'failed',
    `Rank ${culprit.rank} failed: ${culprit.error ?? culprit.ending}`,
    `Rank ${culprit.rank} of ${worldSize}, ${where}on ${culprit.host}, after ${duration}.`,
    end.text,
  );
}

/** Shows a box with a first sentence, a second one, and a text as the launcher printed it; none if `kind` is null. */
export function notice(kind, title, more = '', report = '') {
  const box = $('notice');
  box.hidden = kind === null;
  box.className = kind ?? '';
  const parts = [title, more, report].join('\n');
  if (box.dataset.shown === parts) return;
  box.dataset.shown = parts;
  const pre = element('pre', { tabIndex: 0 }, report ?? '');
  box.replaceChildren(
    element(more ? 'strong' : 'span', {}, title),
    ...(more ? [element('p', {}, more)] : []),
    ...(report ? [element('details', {}, element('summary', {}, 'What the launcher printed'), pre)] : []),
  );
}

/** Lists the metrics that are no numbers. */
export function drawTroubles(troubles) {
  const box = $('alerts');
  box.hidden = troubles.length === 0;
  box.className = troubles.some(({ isOpen }) => isOpen) ? 'failed' : 'lost';
  const texts = troubles.map(({ name, text }) => `${name}: ${text}`);
  if (box.textContent !== texts.join('')) box.replaceChildren(...texts.map((text) => element('p', {}, text)));
}
