// The charts: one for each metric, with its training, validation and test curves, and those of another run.

import { onScheme } from '../element.js';
import { Chart, throughput } from './chart.js';
import { placeOf } from './series.js';

/** Names of the charts that come first, in this order. */
const order = ['loss', throughput];

export class Curves {
  #container;
  #hint;
  #charts = new Map();
  #smoothing = 0;

  constructor(container, hint, slider, sliderValue) {
    this.#container = container;
    this.#hint = hint;
    new ResizeObserver(() => this.#each((chart) => chart.resize())).observe(container);
    onScheme(() => this.#each((chart) => chart.repaint()));
    slider.addEventListener('input', () => {
      this.#smoothing = Number(slider.value);
      sliderValue.textContent = this.#smoothing === 0 ? 'off' : `${this.#smoothing}`;
      this.#each((chart) => chart.smooth(this.#smoothing));
    });
  }

  clear() {
    this.#each((chart) => chart.clear('this'));
  }

  add(parts) {
    for (const [name, part] of Object.entries(parts))
      this.#chartOf(name).add('this', placeOf(name).set, name, part);
    this.#hint.hidden = this.#charts.size > 0;
    this.#each((chart) => chart.draw());
  }

  /** Draws the curves of another run beside those of this one; none if there are none. */
  compare(parts) {
    this.#each((chart) => chart.clear('other'));
    for (const [name, part] of parts) {
      this.#chartOf(name).add('other', placeOf(name).set, name, part);
    }
    this.#each((chart) => chart.draw());
    for (const [name, chart] of this.#charts) if (chart.isEmpty) this.#remove(name, chart);
  }

  /** Returns what is not a number, by the name of the metric. */
  get troubles() {
    return [...this.#charts.values()].flatMap((chart) => chart.troubles);
  }

  /** Returns the last value of a metric as text; undefined without one. */
  last(name) {
    return this.#charts.get(placeOf(name).chart)?.last(placeOf(name).set);
  }

  #chartOf(name) {
    const { chart: title } = placeOf(name);
    const known = this.#charts.get(title);
    if (known) return known;
    const chart = new Chart(title, this.#smoothing);
    const before = [...this.#container.children].find((child) => place(child.dataset.name) > place(title));
    this.#container.insertBefore(chart.box, before ?? null);
    this.#charts.set(title, chart);
    return chart;
  }

  #remove(name, chart) {
    chart.box.remove();
    this.#charts.delete(name);
  }

  #each(act) {
    for (const chart of this.#charts.values()) act(chart);
  }
}

function place(name) {
  const index = order.indexOf(name);
  return index < 0 ? order.length : index;
}
