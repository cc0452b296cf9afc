// Texts of numbers, sizes, durations and axes.

/** Numbers, and ticks of an axis, from here on are written as 1.25e9. */
const large = 1e9;
const largeTick = 1e7;

export function numberText(value) {
  if (value === null || value === undefined) return '–';
  if (Math.abs(value) >= large) return exponential(value, 3);
  if (Number.isInteger(value)) return value.toLocaleString('en');
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : `${Number(value.toPrecision(4))}`;
}

export function byteText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return `${bytes >= 100 ? Math.round(bytes) : Number(bytes.toPrecision(3))} ${units[unit]}`;
}

export const msText = (ms) =>
  `${ms >= 100 ? Math.round(ms).toLocaleString('en') : Number(ms.toPrecision(3))} ms`;

/** Formats a duration: 75,000 ms is 1:15. */
export function durationText(ms) {
  const seconds = Math.floor(ms / 1000);
  const two = (value) => `${value}`.padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** Returns the labels of a linear axis, with as many decimals as keep them apart. */
export function tickTexts(ticks) {
  if (ticks.length === 0) return [];
  const gap = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : Math.abs(ticks[0]) || 1;
  const isExact = (digits) =>
    ticks.every((tick) => Math.abs(Number(tick.toFixed(digits)) - tick) < gap / 100);
  for (let digits = 0; digits <= 6 && ticks.every((tick) => Math.abs(tick) < largeTick); digits++) {
    if (!isExact(digits)) continue;
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return ticks.map((tick) => (tick === 0 ? '0' : tick.toLocaleString('en', options)));
  }
  return shortTexts(ticks);
}

/** Returns the shortest labels that differ, for ticks of different sizes. */
export function shortTexts(ticks) {
  for (let digits = 1; digits < 17; digits++) {
    const texts = ticks.map((tick) => shortText(tick, digits));
    if (new Set(texts).size === ticks.length && texts.every((text, i) => near(Number(text), ticks[i])))
      return texts;
  }
  return ticks.map(String);
}

function shortText(value, digits) {
  const short = Number(value.toPrecision(digits));
  return Math.abs(short) >= 1e5 ? exponential(short, digits) : `${short}`;
}

/** Returns a text such as 1.25e9. */
function exponential(value, digits) {
  const [mantissa, exponent] = value.toExponential(digits).split('e+');
  return `${Number(mantissa)}e${exponent}`;
}

const near = (a, b) => Math.abs(a - b) <= 1e-9 * Math.abs(b);

/** Returns ticks of a logarithmic axis: powers of ten, with 2 and 5 between them, or even steps in a short range. */
export function logTicks(min, max) {
  const from = Math.floor(Math.log10(min));
  const to = Math.ceil(Math.log10(max));
  const every = Math.ceil((to - from) / 8);
  for (const factors of every > 1 || to - from > 4 ? [[1]] : [[1], [1, 2, 5]]) {
    const ticks = [];
    for (let power = from; power <= to; power += every) {
      for (const factor of factors) ticks.push(Number(`${factor}e${power}`));
    }
    const seen = ticks.filter((tick) => tick >= min && tick <= max);
    if (seen.length >= 3) return seen;
  }
  return evenTicks(min, max);
}

function evenTicks(min, max) {
  const wanted = (max - min) / 5;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const gap = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= wanted);
  const ticks = [];
  for (let at = Math.ceil(min / gap); at * gap <= max; at++) ticks.push(Number((at * gap).toPrecision(12)));
  return ticks;
}
