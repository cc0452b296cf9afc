// One chart for each name that is reported; points are means over ranks.

import { numberText } from './ranks.js';

const height = 200;
const throughput = 'samples/s';
/** Names of the charts that come first, in this order. */
const order = ['loss', throughput];

export class Curves {
  #container;
  #hint;
  /** By name: x, y, and the chart once it is drawn. */
  #curves = new Map();

  constructor(container, hint) {
    this.#container = container;
    this.#hint = hint;
    new ResizeObserver(() => this.#resize()).observe(container);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#repaint());
  }

  clear() {
    for (const curve of this.#curves.values()) {
      curve.x.length = 0;
      curve.y.length = 0;
    }
  }

  add(parts) {
    for (const [name, { from, x, y }] of Object.entries(parts)) {
      const curve = this.#curves.get(name) ?? this.#create(name);
      curve.x.splice(from, Infinity, ...x);
      curve.y.splice(from, Infinity, ...y);
      curve.chart.setData([curve.x, curve.y]);
      curve.value.textContent = numberText(curve.y.at(-1));
    }
    this.#hint.hidden = this.#curves.size > 0;
  }

  #create(name) {
    const box = Object.assign(document.createElement('div'), { className: 'curve' });
    const title = Object.assign(document.createElement('h3'), { textContent: name });
    const value = document.createElement('span');
    title.append(value);
    box.append(title);
    const before = [...this.#container.children].find((child) => place(child.dataset.name) > place(name));
    box.dataset.name = name;
    this.#container.insertBefore(box, before ?? null);
    const curve = { name, box, value, x: [], y: [] };
    curve.chart = chartOf(curve);
    this.#curves.set(name, curve);
    this.#resize();
    return curve;
  }

  #resize() {
    for (const { box, chart } of this.#curves.values()) {
      if (box.clientWidth !== chart.width) chart.setSize({ width: box.clientWidth, height });
    }
  }

  // Colours are fixed when a chart is made.
  #repaint() {
    for (const curve of this.#curves.values()) {
      curve.chart.destroy();
      curve.chart = chartOf(curve);
    }
  }
}

function place(name) {
  const index = order.indexOf(name);
  return index < 0 ? order.length : index;
}

function chartOf({ name, box, x, y }) {
  const color = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  const axis = {
    stroke: color('--quiet'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { stroke: color('--line'), width: 1 },
    font: '11px system-ui, sans-serif',
  };
  const xLabel = name === throughput ? 'seconds' : 'step';
  const options = {
    width: box.clientWidth || 380,
    height,
    scales: {
      x: { time: false },
      ...(name === throughput && { y: { range: (_, __, max) => [0, max * 1.1 || 1] } }),
    },
    axes: [
      { ...axis, size: 34, label: xLabel, labelSize: 14, labelFont: axis.font },
      { ...axis, size: 58, values: (_, ticks) => ticks.map((tick) => numberText(tick)) },
    ],
    series: [
      { label: xLabel },
      { label: name, stroke: color('--accent'), width: 1.5, points: { show: false } },
    ],
    legend: { show: false },
    cursor: { y: false },
    hooks: {
      setCursor: [
        ({ cursor: { idx } }) => {
          const at = idx ?? y.length - 1;
          const shown = numberText(y[at]);
          box.querySelector('span').textContent =
            idx === null || idx === undefined ? shown : `${xLabel} ${numberText(x[at])}: ${shown}`;
        },
      ],
    },
  };
  return new uPlot(options, [x, y], box);
}
