// Compares the run with another one, whose report the user drops onto the page or chooses.

import { element } from './element.js';
import { durationText, numberText } from './format.js';

/** Returns the message in a report; throws a sentence if the text is no report. */
export function recordedIn(html) {
  const [, text] = /<script id="recorded" type="application\/json">([^<]*)</.exec(html) ?? [];
  try {
    const message = JSON.parse(text);
    if (message.job && message.ranks && message.curves) {
      return { ...message, curves: new Map(Object.entries(message.curves)) };
    }
  } catch {
    // Not JSON, or none at all.
  }
  throw new Error('This file is no report of a run. ringwise run --report FILE writes one.');
}

/** Calls `onReport` with the report that the user drops or chooses, and with null when the comparison ends. */
export function onOtherRun({ input, end, message }, onReport) {
  const open = async (file) => {
    if (!file) return;
    try {
      onReport(recordedIn(await file.text()));
      message.textContent = '';
      end.hidden = false;
    } catch (error) {
      message.textContent = `${file.name}: ${error.message}`;
    }
  };
  input.addEventListener('change', () => {
    void open(input.files[0]);
    input.value = '';
  });
  end.addEventListener('click', () => {
    end.hidden = true;
    onReport(null);
    input.focus();
  });
  const mark = (isOver) => document.body.classList.toggle('over', isOver);
  addEventListener('dragover', (event) => {
    event.preventDefault();
    mark(true);
  });
  addEventListener('dragleave', (event) => mark(event.relatedTarget !== null));
  addEventListener('drop', (event) => {
    event.preventDefault();
    mark(false);
    void open(event.dataTransfer.files[0]);
  });
}

/** Fills the table of both runs. */
export function drawComparison(head, body, mine, other) {
  head.replaceChildren(
    element('th', { scope: 'col' }, 'run'),
    ...[mine, other].map((message, i) =>
      element('th', { scope: 'col' }, `${['this: ', 'other: '][i]}${message.job.title}`),
    ),
  );
  const names = [...new Set([...mine.curves.keys(), ...other.curves.keys()])].filter(
    (name) => name !== 'samples/s',
  );
  const rows = [
    ['started', ({ job }) => new Date(job.startedAtMs).toLocaleString()],
    [
      'ended',
      ({ job }) => (job.end ? (job.end.exitCode === 0 ? 'well' : `exit code ${job.end.exitCode}`) : 'no'),
    ],
    ['elapsed', ({ job }) => durationText(job.elapsedMs)],
    ['ranks', ({ job }) => numberText(job.worldSize)],
    ['step', ({ job }) => numberText(job.step)],
    ['samples/s', ({ curves }) => numberText(meanOf(curves.get('samples/s')))],
    ...names.map((name) => [`last ${name}`, ({ curves }) => lastOf(curves.get(name))]),
    ...names
      .filter((name) => /loss/i.test(name))
      .map((name) => [`lowest ${name}`, ({ curves }) => lowestOf(curves.get(name))]),
  ];
  body.replaceChildren(
    ...rows.map(([name, text]) =>
      element(
        'tr',
        {},
        element('th', { scope: 'row' }, name),
        ...[mine, other].map((message) => element('td', {}, text(message))),
      ),
    ),
  );
}

/** Returns the mean of a curve; null without one. */
export const meanOf = (curve) =>
  curve?.y.length ? curve.y.reduce((a, b) => a + b, 0) / curve.y.length : null;

const lastOf = (curve) =>
  curve?.bad.at(-1)?.isOpen ? `${curve.bad.at(-1).value}` : numberText(curve?.y.at(-1) ?? null);

function lowestOf(curve) {
  const values = (curve?.y ?? []).filter((value) => value !== null);
  return values.length === 0 ? '–' : numberText(values.reduce((a, b) => Math.min(a, b)));
}
