// One chart: its curves, its legend with the latest values, and a sentence about values that are not numbers.

import { element, setText } from '../element.js';
import { numberText } from '../format.js';
import { labelOf, valueText } from './legend.js';
import { plotOf, tableOf } from './plot.js';
import { badText } from './series.js';

export const throughput = 'samples/s';
const height = 200;
const setOrder = ['train', 'validation', 'test'];

export class Chart {
  box;
  #title;
  #xName;
  #legend = element('ul', { className: 'series' });
  #trouble = element('p', { className: 'trouble', hidden: true });
  #where = element('span', { className: 'where' });
  #frame;
  #log;
  /** In the order of drawing: run, set, name, x, y, bad, and the legend's item. */
  #series = [];
  #plot = null;
  #isStale = true;
  #smoothing;

  constructor(title, smoothing) {
    this.#title = title;
    this.#xName = title === throughput ? 'second' : 'step';
    this.#smoothing = smoothing;
    this.#log = element(
      'button',
      { type: 'button', 'aria-pressed': 'false', 'aria-label': `log axis of ${title}` },
      'log',
    );
    this.#log.addEventListener('click', () => {
      this.#log.setAttribute('aria-pressed', `${!this.#isLog}`);
      this.#rebuild();
    });
    this.#frame = element('div', { className: 'plot', role: 'img', tabIndex: 0 });
    this.#frame.addEventListener('keydown', (event) => this.#move(event));
    const head = element(
      'div',
      { className: 'head' },
      element('h3', {}, title),
      this.#where,
      this.#legend,
      this.#log,
    );
    this.box = element('div', { className: 'curve' }, head, this.#trouble, this.#frame);
    this.box.dataset.name = title;
  }

  clear(run) {
    for (const series of this.#series) {
      if (series.run === run) Object.assign(series, { x: [], y: [], bad: [] });
    }
    if (run === 'other') this.#series = this.#series.filter((series) => series.run !== run);
    this.#isStale = true;
  }

  get isEmpty() {
    return this.#series.length === 0;
  }

  add(run, set, name, { from, x, y, bad }) {
    let series = this.#series.find((each) => each.run === run && each.name === name);
    if (!series) {
      series = { run, set, name, x: [], y: [], bad: [] };
      this.#series.push(series);
      const place = (each) => (each.run === 'this' ? 0 : 10) + setOrder.indexOf(each.set);
      this.#series.sort((a, b) => place(a) - place(b));
      this.#isStale = true;
    }
    series.x.splice(from, Infinity, ...x);
    series.y.splice(from, Infinity, ...y);
    series.bad = bad;
  }

  get troubles() {
    return this.#series
      .filter(({ run, bad }) => run === 'this' && bad.length > 0)
      .map(({ name, bad }) => ({ name, text: badText(bad), isOpen: bad.at(-1).isOpen }));
  }

  last(set) {
    const series = this.#series.find((each) => each.run === 'this' && each.set === set);
    return series && valueText(series, series.y.length - 1);
  }

  smooth(weight) {
    this.#smoothing = weight;
    this.#rebuild();
  }

  /** Draws in the colours of now. */
  repaint() {
    this.#rebuild();
  }

  resize() {
    const width = this.#frame.clientWidth;
    if (this.#plot && width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height });
  }

  draw() {
    this.#log.disabled = !this.#series.some(({ y }) => y.some((value) => value > 0));
    if (this.#isStale || !this.#plot) this.#rebuild();
    else this.#plot.setData(this.#data());
    if ((this.#plot.cursor.idx ?? null) === null) this.#describe(null);
    const trouble = this.troubles[0];
    this.#trouble.hidden = !trouble;
    if (trouble)
      setText(this.#trouble, `${trouble.name === this.#title ? '' : `${trouble.name}: `}${trouble.text}`);
  }

  get #isLog() {
    return this.#log.getAttribute('aria-pressed') === 'true';
  }

  #data() {
    return tableOf(this.#series, this.#smoothing, this.#isLog);
  }

  // Colours, curves and the kind of the axis are fixed when a plot is made.
  #rebuild() {
    this.#plot?.destroy();
    this.#isStale = false;
    this.#legend.replaceChildren(
      ...this.#series.map((series) => {
        series.text = element('span');
        return element(
          'li',
          { className: `${series.set} ${series.run}` },
          labelOf(series, this.#series),
          series.text,
        );
      }),
    );
    this.#plot = plotOf(this.#frame, {
      width: this.#frame.clientWidth || 380,
      height,
      xName: `${this.#xName}${this.#xName === 'second' ? 's' : ''}`,
      isFromZero: this.#title === throughput,
      isLog: this.#isLog,
      isSmooth: this.#smoothing > 0,
      series: this.#series,
      data: this.#data(),
      onCursor: (x) => this.#describe(x),
    });
    this.#describe(null);
  }

  /** Shows the values at `x`, or the latest ones. */
  #describe(x) {
    setText(this.#where, x === null ? '' : `${this.#xName} ${numberText(x)}`);
    for (const series of this.#series) {
      const at = x === null ? series.y.length - 1 : series.x.findLastIndex((each) => each <= x);
      const text = valueText(series, at);
      setText(series.text, text);
      series.text.className = /NaN|Infinity/.test(text) ? 'bad' : '';
    }
    const values = this.#series.map(
      (each) => `${each.name}${each.run === 'other' ? ' of the other run' : ''} ${each.text.textContent}`,
    );
    this.#frame.setAttribute(
      'aria-label',
      `${this.#title}: ${values.join(', ')}. Arrow keys move along the curve.`,
    );
  }

  #move(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity }[
      event.key
    ];
    const plot = this.#plot;
    const x = plot?.data[0];
    if (event.key === 'Escape') plot?.setCursor({ left: -10, top: -10 });
    if (steps === undefined || !x?.length) return;
    event.preventDefault();
    const at = Math.min(x.length - 1, Math.max(0, (plot.cursor.idx ?? x.length - 1) + steps));
    plot.setCursor({ left: plot.valToPos(x[at], 'x'), top: 0 });
  }
}
