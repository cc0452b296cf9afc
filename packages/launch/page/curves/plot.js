// Draws a chart with uPlot: the curves, and in red the steps at which a value was no number.

import uPlot from 'uplot';
import { colorOf } from '../element.js';
import { logTicks, shortTexts, tickTexts } from '../format.js';
import { smoothed } from './series.js';

const font = '11px system-ui, sans-serif';
const colorNames = { train: 'accent', validation: 'second', test: 'third' };
/** Distances between the ticks of steps: a step has no halves. */
const wholeSteps = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((size) => size * 10 ** power),
).flat();
/** A curve of so few points shows each of them. */
const fewPoints = 40;

/** Returns uPlot's table of all curves: x, and for each curve its values and, if smoothed, those as well. */
export function tableOf(series, weight, isLog) {
  const shown = (y) => (isLog ? y.map((value) => (value > 0 ? value : null)) : y);
  const tables = series.map(({ x, y }) =>
    weight > 0 ? [x, shown(y), shown(smoothed(y, weight))] : [x, shown(y)],
  );
  return tables.length === 0 ? [[]] : uPlot.join(tables);
}

export function plotOf(frame, { width, height, xName, isFromZero, isLog, isSmooth, series, data, onCursor }) {
  const axis = {
    stroke: colorOf('quiet'),
    grid: { stroke: colorOf('line'), width: 1 },
    ticks: { stroke: colorOf('line'), width: 1 },
    font,
  };
  const texts = (ticks) => (isLog ? shortTexts(ticks) : tickTexts(ticks));
  const options = {
    width,
    height,
    // On the right, room for half of a tick label that stands at the end of the axis.
    padding: [8, 20, 0, 0],
    scales: {
      x: { time: false },
      y: { distr: isLog ? 3 : 1, range: (_, min, max) => rangeOf(min, max, isFromZero && !isLog, isLog) },
    },
    axes: [
      {
        ...axis,
        size: 34,
        space: 70,
        label: xName,
        labelSize: 14,
        labelFont: font,
        values: (_, ticks) => tickTexts(ticks),
        ...(xName === 'step' && { incrs: wholeSteps }),
      },
      {
        ...axis,
        space: 26,
        size: (_, values) =>
          Math.max(34, 14 + 6.5 * Math.max(0, ...(values ?? []).map((text) => text.length))),
        values: (_, ticks) => texts(ticks),
        ...(isLog && { splits: (_, __, min, max) => logTicks(min, max), filter: (_, ticks) => ticks }),
      },
    ],
    series: [{ label: xName }, ...series.flatMap((each) => linesOf(each, isSmooth))],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    hooks: {
      setCursor: [
        ({ cursor: { idx }, data: [x] }) => onCursor(idx === null || idx === undefined ? null : x[idx]),
      ],
      draw: [(plot) => drawBad(plot, series)],
    },
  };
  return new uPlot(options, data, frame);
}

function linesOf({ run, set, x, name }, isSmooth) {
  const stroke = colorOf(colorNames[set]);
  const line = {
    label: name,
    stroke,
    width: 1.75,
    points: { show: () => x.length <= fewPoints, size: 5, fill: stroke },
    ...(run === 'other' && { dash: [6, 4], width: 1.25 }),
  };
  return isSmooth ? [{ ...line, alpha: 0.3, width: 1, points: { show: false } }, line] : [line];
}

function rangeOf(min, max, isFromZero, isLog) {
  if (min === null || min === undefined) return isLog ? [0.1, 10] : [0, 1];
  if (isLog) return min === max ? [min / 2, max * 2] : [min / 1.1, max * 1.1];
  const gap = (isFromZero ? max : max - min) || Math.abs(max) || 1;
  return [isFromZero ? 0 : min - 0.06 * gap, max + 0.08 * gap];
}

/** Marks the steps of `bad`, from the last number before them, on the curve. */
function drawBad(plot, series) {
  const pen = plot.ctx;
  const scale = devicePixelRatio;
  const { left, top, width, height } = plot.bbox;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  for (const { x, y, bad, run } of series) {
    if (run === 'other') continue;
    for (const { from, to, value, isOpen } of bad) {
      const a = plot.valToPos(from, 'x', true);
      const isLast = isOpen && x.at(-1) === plot.data[0].at(-1);
      const b = isLast ? left + width : plot.valToPos(isOpen ? x.at(-1) : to, 'x', true);
      pen.fillStyle = colorOf('bad-area');
      pen.fillRect(a, top, Math.max(b - a, 3 * scale), height);
      pen.fillStyle = colorOf('bad');
      pen.fillRect(a - scale, top, 2 * scale, height);
      const before = x.findLastIndex((each, i) => each < from && y[i] !== null);
      if (before >= 0)
        drawCross(pen, plot.valToPos(x[before], 'x', true), plot.valToPos(y[before], 'y', true), scale);
      pen.font = `bold ${12 * scale}px system-ui, sans-serif`;
      const isNearEnd = a + 60 * scale > left + width;
      pen.textAlign = isNearEnd ? 'right' : 'left';
      pen.fillStyle = colorOf('bad');
      pen.fillText(value.replace('Infinity', '∞'), a + (isNearEnd ? -6 : 6) * scale, top + 14 * scale);
    }
  }
  pen.restore();
}

function drawCross(pen, x, y, scale) {
  const arm = 4.5 * scale;
  pen.strokeStyle = colorOf('bad');
  pen.lineWidth = 2.5 * scale;
  pen.beginPath();
  pen.moveTo(x - arm, y - arm);
  pen.lineTo(x + arm, y + arm);
  pen.moveTo(x - arm, y + arm);
  pen.lineTo(x + arm, y - arm);
  pen.stroke();
}
