// Parses quantities with units: rates of links and numbers of parameters.

const perSecond: Readonly<Record<string, number>> = { m: 1e-3, g: 1, t: 1e3 };
const thousands: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, b: 1e9, t: 1e12 };

/** Returns the gigabits per second of '100g', '2.5G', '800m' or '400Gbit/s'; null for any other text, such as bytes. */
export function parseGbit(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)([mgt])(?:bit(?:\/s)?|bps)?$/i.exec(text);
  if (!match || text.endsWith('B')) return null;
  const gbit = Number(match[1]) * perSecond[match[2]!.toLowerCase()]!;
  return gbit > 0 ? gbit : null;
}

/** Returns the number of '124M', '1.5B' or '7000000', a whole number above 0; null for any other text. */
export function parseCount(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)([kmbt]?)$/i.exec(text);
  if (!match) return null;
  const count = Math.round(Number(match[1]) * thousands[match[2]!.toLowerCase()]!);
  return Number.isSafeInteger(count) && count > 0 ? count : null;
}

/** Formats bytes in the largest binary unit that is not above them, as '25 MiB'. */
export function shownBytes(bytes: number): string {
  const power = Math.min(3, Math.max(0, Math.floor(Math.log2(bytes) / 10)));
  return `${Number((bytes / 1024 ** power).toPrecision(3))} ${['B', 'KiB', 'MiB', 'GiB'][power]}`;
}

/** Formats milliseconds with three digits at least, as '0.123 ms', '80.0 ms' or '1234 ms'. */
export function shownMs(ms: number): string {
  return `${ms.toFixed(ms < 1 ? 3 : ms < 10 ? 2 : ms < 1000 ? 1 : 0)} ms`;
}
