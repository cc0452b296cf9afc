// The table of ranks. Its headers sort it; the timeline has the same order.

import { element } from '../element.js';
import { byteText, msText, numberText } from '../format.js';
import { ownMs, sorted } from './pace.js';

const unknown = (value, text) => (value === null ? '–' : text(value));
/** Name, text, sort key, and class: columns that are `wide` or `middle` are left out where there is no room. */
const columns = [
  ['rank', (r) => r.rank, (r) => r.rank, 'number'],
  ['state', (r) => (r.ending ? `${r.state}: ${r.ending}` : r.state), (r) => r.state, 'state'],
  ['step', (r) => numberText(r.step), (r) => r.step, 'number'],
  [
    'behind',
    (r) => (r.behind ? `${r.behind} step${r.behind === 1 ? '' : 's'}` : '–'),
    (r) => r.behind,
    'number',
  ],
  ['own time', (r) => unknown(ownMs(r), msText), ownMs, 'number'],
  ['waits', (r) => unknown(r.waitMs, msText), (r) => r.waitMs, 'number middle'],
  [
    'last report',
    (r) => unknown(r.silentMs, (ms) => `${(ms / 1000).toFixed(1)} s ago`),
    (r) => r.silentMs,
    'number middle',
  ],
  ['samples/s', (r) => numberText(r.samplesPerSecond), (r) => r.samplesPerSecond, 'number wide'],
  ['memory', (r) => unknown(r.memoryBytes, byteText), (r) => r.memoryBytes, 'number middle'],
  ['restarts', (r) => r.restarts, (r) => r.restarts, 'number wide'],
  ['host', (r) => r.host, (r) => r.host, 'wide'],
  ['pid', (r) => r.pid, (r) => r.pid, 'number wide'],
];

/** Ranks send reports in batches, so a rank that is behind is marked only if it has been silent for so long. */
const lateMs = 1_000;

export class Ranks {
  #head;
  #body;
  #slowest;
  #onSort;
  #ranks = [];
  #culprit = null;
  #by = 'rank';
  #isDescending = false;

  /** `slowest`: the button that sorts by own time. `onSort` is called when the user sorts. */
  constructor(head, body, slowest, onSort) {
    this.#head = head;
    this.#body = body;
    this.#slowest = slowest;
    this.#onSort = onSort;
    head.append(...columns.map(([name, , , kind]) => this.#header(name, kind)));
    slowest.addEventListener('click', () => {
      const isOn = slowest.getAttribute('aria-pressed') === 'true';
      this.#sort(isOn ? 'rank' : 'own time', !isOn);
    });
  }

  draw(ranks, culprit) {
    this.#ranks = ranks;
    this.#culprit = culprit;
    this.#body.replaceChildren(...this.ordered(ranks).map((rank) => this.#row(rank)));
  }

  ordered(ranks) {
    const [, , key] = columns.find(([name]) => name === this.#by);
    return sorted(ranks, key, this.#isDescending);
  }

  #header(name, kind) {
    const button = element('button', { type: 'button', className: 'sort' }, name);
    button.addEventListener('click', () =>
      this.#sort(name, this.#by === name ? !this.#isDescending : name !== 'rank'),
    );
    return element(
      'th',
      { className: kind, scope: 'col', ...(name === 'rank' && { 'aria-sort': 'ascending' }) },
      button,
    );
  }

  #sort(name, isDescending) {
    this.#by = name;
    this.#isDescending = isDescending;
    for (const [index, [each]] of columns.entries()) {
      const header = this.#head.children[index];
      if (each === name) header.setAttribute('aria-sort', isDescending ? 'descending' : 'ascending');
      else header.removeAttribute('aria-sort');
    }
    this.#slowest.setAttribute('aria-pressed', `${name === 'own time' && isDescending}`);
    this.draw(this.#ranks, this.#culprit);
    this.#onSort();
  }

  #row(rank) {
    const isCulprit = rank.rank === this.#culprit;
    const cells = columns.map(([name, text, , kind]) => {
      const isLate = name === 'behind' && rank.behind > 0 && rank.silentMs > lateMs;
      const mark = name === 'state' ? rank.state : isLate ? 'late' : '';
      return element(
        'td',
        { className: `${kind} ${mark}` },
        `${text(rank)}${isCulprit && name === 'state' ? ', root cause' : ''}`,
      );
    });
    return element('tr', { className: isCulprit ? 'culprit' : '' }, ...cells);
  }
}
