// Draws the last steps of the ranks over time, one row per rank. A step is the time between two reports. If the
// program reports the statistics of its steps, the row also has backward, the wait for gradients, and the buckets.

import { colorOf, onScheme } from '../element.js';
import { drawAxis, drawRow } from './timeline-drawing.js';

/** Heights of a row, of its bar, and of the buckets below it; and which rows have a number. */
const sizes = [
  { most: 16, row: 26, bar: 14, bucket: 4, labelEvery: 1 },
  { most: 40, row: 15, bar: 10, bucket: 2, labelEvery: 1 },
  { most: Infinity, row: 9, bar: 7, bucket: 0, labelEvery: 2 },
];
/** More rows than this would not fit a screen: the first ones of the table are drawn. */
const mostRows = 64;
const axisHeight = 20;
const kept = 100;
const patienceMs = 2_000;

export class Timeline {
  #canvas;
  #note;
  #select;
  /** By rank, oldest first. */
  #spans = new Map();
  #ranks = [];

  constructor(canvas, note, select) {
    this.#canvas = canvas;
    this.#note = note;
    this.#select = select;
    select.addEventListener('change', () => this.#draw());
    new ResizeObserver(() => this.#draw()).observe(canvas.parentElement);
    onScheme(() => this.#draw());
  }

  clear() {
    this.#spans.clear();
  }

  /** Draws the rows in the order of these ranks. */
  order(ranks) {
    this.#ranks = ranks;
    this.#draw();
  }

  add(spans, ranks) {
    for (const span of spans) {
      const own = this.#spans.get(span.rank) ?? [];
      own.push(span);
      if (own.length > kept) own.shift();
      this.#spans.set(span.rank, own);
    }
    this.order(ranks);
  }

  #draw() {
    const rows = this.#ranks
      .slice(0, mostRows)
      .map(({ rank }) => ({ rank, spans: this.#spans.get(rank) ?? [] }));
    const shown = this.#window();
    const canvas = this.#canvas;
    canvas.hidden = shown === null;
    if (!shown) {
      this.#note.textContent = 'Nothing to show until ranks have reported two steps.';
      return;
    }
    const width = canvas.parentElement.clientWidth - paddingOf(canvas.parentElement);
    const size = sizes.find(({ most }) => rows.length <= most);
    const height = rows.length * size.row + axisHeight;
    const scale = devicePixelRatio;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext('2d');
    pen.scale(scale, scale);
    const left = 34;
    const right = 46;
    const toX = (ms) => left + ((ms - shown.fromMs) / (shown.toMs - shown.fromMs)) * (width - left - right);
    const colors = colorsOf();
    drawAxis(pen, colors, shown, toX, rows.length * size.row);
    for (const [index, row] of rows.entries()) {
      const hasLabel = index % size.labelEvery === 0;
      drawRow(pen, colors, row, shown, { ...size, top: index * size.row, hasLabel }, toX, width);
    }
    canvas.setAttribute(
      'aria-label',
      `The last ${this.#select.value} steps of ${rows.length} ranks over time`,
    );
    const hasTiming = rows.some(({ spans }) => spans.some(({ timing }) => timing));
    const missing = this.#ranks.length - rows.length;
    this.#note.textContent = [
      ...(missing > 0 ? [`The first ${rows.length} ranks of the table; ${missing} are not drawn.`] : []),
      hasTiming
        ? 'On the right: the share of the time shown that the rank waited for gradients.'
        : 'For backward and communication, report ddp: model.statistics() as well.',
    ].join(' ');
  }

  /**
   * Returns the time of the last steps that all ranks have reported; null if there are none. Ranks that have been
   * silent for `patienceMs` do not count, unless all have.
   */
  #window() {
    const stepsOf = ({ rank }) => (this.#spans.get(rank) ?? []).filter(({ stepMs }) => stepMs !== null);
    const live = this.#ranks.filter(({ silentMs }) => silentMs !== null && silentMs < patienceMs);
    const steps = (live.length > 0 ? live : this.#ranks).map(stepsOf).filter(({ length }) => length > 0);
    if (steps.length === 0) return null;
    const slowest = steps.reduce((a, b) => (b.at(-1).atMs < a.at(-1).atMs ? b : a));
    const first = slowest.at(-Math.min(Number(this.#select.value), slowest.length));
    const fromMs = first.atMs - first.stepMs;
    const toMs = slowest.at(-1).atMs;
    return toMs > fromMs ? { fromMs, toMs } : null;
  }
}

function colorsOf() {
  const names = ['step', 'backward', 'wait', 'bucket', 'quiet', 'line', 'card'];
  return Object.fromEntries(names.map((name) => [name, colorOf(name)]));
}

function paddingOf(element) {
  const { paddingLeft, paddingRight } = getComputedStyle(element);
  return Number.parseFloat(paddingLeft) + Number.parseFloat(paddingRight);
}
