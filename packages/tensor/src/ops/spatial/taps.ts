// Resizing: each element of the result is a weighted sum of elements of the input along one dimension. This file
// computes their indices and weights on the host, as PyTorch does.

/** One dimension that is resized. */
export interface Line {
  /** The number of dimensions that are resized. */
  readonly rank: number;
  readonly size: number;
  readonly out: number;
  /** The scale factor that positions follow, or null if they follow the sizes. */
  readonly scale: number | null;
  readonly alignCorners: boolean;
  readonly isFloat64: boolean;
}

/** Indices and weights of the elements that each result element is a weighted sum of: [tap][result index]. */
export interface Taps {
  readonly indices: readonly (readonly number[])[];
  readonly weights: readonly (readonly number[])[];
}

const stepOf = ({ size, out, scale }: Line): number => (scale === null ? size / out : 1 / scale);

/**
 * Returns the index of the input element for each result element, or null if the dimension does not change. As in
 * PyTorch, planes whose size stays or doubles ignore the exact scale factor; signals and volumes do not.
 */
export function nearest(line: Line, isExact: boolean): number[] | null {
  const { rank, size, out } = line;
  if (size === out && line.scale === null) return null;
  const step = Math.fround(stepOf(line));
  const isPlane = rank === 2 && !isExact;
  const at = (o: number): number => {
    if (isPlane && out === size) return o;
    if (isPlane && out === 2 * size) return o >> 1;
    return Math.floor(Math.fround((isExact ? o + 0.5 : o) * step));
  };
  return Array.from({ length: out }, (_, o) => Math.min(at(o), size - 1));
}

/** Returns a function that returns the position in the input for each result element. */
function positions(line: Line, isCubic: boolean): (o: number) => number {
  const { size, out, alignCorners, isFloat64 } = line;
  const round = isFloat64 ? (value: number): number => value : Math.fround;
  if (alignCorners) {
    const step = out > 1 ? round((size - 1) / (out - 1)) : 0;
    return (o) => round(step * o);
  }
  const step = round(stepOf(line));
  return (o) => {
    const at = round(round(step * (o + 0.5)) - 0.5);
    return at < 0 && !isCubic ? 0 : at;
  };
}

export function linear(line: Line): Taps | null {
  const { size, out } = line;
  // As in PyTorch, a dimension that keeps its size is not resized, for any scale factor.
  if (size === out) return null;
  const at = positions(line, false);
  const [low, high, share]: number[][] = [[], [], []];
  for (let o = 0; o < out; o++) {
    const position = at(o);
    const first = Math.min(Math.floor(position), size - 1);
    low!.push(first);
    high!.push(Math.min(first + 1, size - 1));
    share!.push(Math.min(1, Math.max(0, position - first)));
  }
  return { indices: [low!, high!], weights: [share!.map((s) => 1 - s), share!] };
}

const sharpness = -0.75;
/** Weight of an element at a distance of at most 1, then of more than 1. */
const inner = (d: number): number => ((sharpness + 2) * d - (sharpness + 3)) * d * d + 1;
const outer = (d: number): number =>
  ((sharpness * d - 5 * sharpness) * d + 8 * sharpness) * d - 4 * sharpness;

export function cubic(line: Line): Taps | null {
  const { size, out } = line;
  const at = positions(line, true);
  const indices: number[][] = [[], [], [], []];
  const weights: number[][] = [[], [], [], []];
  for (let o = 0; o < out; o++) {
    const position = at(o);
    const first = Math.min(Math.floor(position), size - 1);
    const share = Math.min(1, Math.max(0, position - first));
    for (const [i, weight] of [
      outer(share + 1),
      inner(share),
      inner(1 - share),
      outer(2 - share),
    ].entries()) {
      indices[i]!.push(Math.min(size - 1, Math.max(0, first - 1 + i)));
      weights[i]!.push(weight);
    }
  }
  return { indices, weights };
}

/** Returns the weight of an element at a distance of `d` for an antialiased mode, before the weights get the sum 1. */
const triangle = (d: number): number => Math.max(0, 1 - d);
/** As inner() and outer(), with the sharpness −0.5 that antialiased modes have. */
const softCubic = (d: number): number =>
  d < 1 ? (1.5 * d - 2.5) * d * d + 1 : d < 2 ? ((-0.5 * d + 2.5) * d - 4) * d + 2 : 0;

/** Returns the elements that each result element covers, with a weight that falls with the distance from its centre. */
export function covered(line: Line, isCubic: boolean): Taps | null {
  const { size, out, alignCorners, isFloat64 } = line;
  if (size === out) return null;
  const round = isFloat64 ? (value: number): number => value : Math.fround;
  const step = round(alignCorners ? (out > 1 ? (size - 1) / (out - 1) : 0) : stepOf(line));
  const stretch = Math.max(1, step);
  const reach = (isCubic ? 2 : 1) * stretch;
  const weigh = isCubic ? softCubic : triangle;
  const rows = Array.from({ length: out }, (_, o) => {
    const centre = round(step * (o + 0.5));
    const first = Math.max(0, Math.trunc(centre - reach + 0.5));
    const end = Math.min(size, Math.trunc(centre + reach + 0.5));
    const shares = Array.from({ length: Math.max(0, end - first) }, (_, i) =>
      weigh(Math.abs((first + i - centre + 0.5) / stretch)),
    );
    const total = shares.reduce((sum, share) => sum + share, 0);
    return { first, weights: shares.map((share) => (total === 0 ? share : share / total)) };
  });
  const count = rows.reduce((most, { weights }) => Math.max(most, weights.length), 0);
  const taps = Array.from({ length: count }, (_, tap) => tap);
  const spreads = rows.map(({ weights }) => spread(weights, count));
  return {
    // A row with fewer elements repeats its last one, which keeps infinities away from weights of 0.
    indices: taps.map((tap) => rows.map(({ first, weights }) => first + Math.min(tap, weights.length - 1))),
    weights: taps.map((tap) => spreads.map((weights) => weights[tap]!)),
  };
}

/** Returns `count` weights, the last of `weights` in as many parts as are missing. */
function spread(weights: readonly number[], count: number): number[] {
  const missing = count - weights.length;
  const last = weights.at(-1)! / (missing + 1);
  return [...weights.slice(0, -1), ...new Array<number>(missing + 1).fill(last)];
}
