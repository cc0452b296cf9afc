// Finds the differences between two answers to a case.
import type { Answer, Case, Result, Value } from './case.ts';

/**
 * Kinds of differences. 'raises': refused here, computed by PyTorch. 'computes': the opposite. 'dtype', 'shape' or
 * 'value' of a result; 'NaN' if one side has a number and the other NaN; the same for a gradient. 'second gradient':
 * its values, which are not compared where PyTorch has none. 'crash': what was thrown here is no proper error.
 */
export const kinds = [
  ...(['raises', 'computes', 'dtype', 'shape', 'value', 'NaN'] as const),
  ...([
    'gradient',
    'gradient NaN',
    'gradient raises',
    'gradient computes',
    'second gradient',
    'crash',
  ] as const),
] as const;
export type Kind = (typeof kinds)[number];

export interface Difference {
  readonly kind: Kind;
  readonly text: string;
}

/** Tolerances by dtype: relative, and absolute. 16-bit floats are rounded after each of several steps on both sides. */
const tolerances: Readonly<Record<string, readonly [relative: number, least: number]>> = {
  float64: [1e-9, 1e-10],
  float32: [3e-5, 3e-6],
  float16: [6e-3, 2e-3],
  bfloat16: [4e-2, 2e-2],
};

const show = (value: Result | null | undefined): string => {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'string') return `'${value}'`;
  const elements = Array.from(value.elements as ArrayLike<number>, (x) =>
    typeof x === 'bigint' ? `${x}n` : String(Number(Number(x).toPrecision(8))),
  );
  return `${value.dtype} [${value.shape.join(', ')}] (${elements.slice(0, 24).join(', ')}${elements.length > 24 ? ', …' : ''})`;
};

interface Tolerance {
  readonly relative: number;
  readonly least: number;
}

/**
 * Returns the tolerance for a result: none for integers and bool, else that of the coarsest float dtype among the
 * result and the inputs. An input that is no float counts as float32. `error` is added to the absolute part.
 */
function toleranceOf({ inputs }: Case, { dtype }: Value, error: number): Tolerance {
  if (tolerances[dtype] === undefined) return { relative: 0, least: 0 };
  const all = inputs.map((input) => input.dtype);
  const types = [dtype, ...all.filter((type) => type in tolerances)];
  if (all.some((type) => !(type in tolerances))) types.push('float32');
  const [relative, least] = [0, 1].map((i) => Math.max(...types.map((type) => tolerances[type]![i]!)));
  return { relative: relative!, least: least! + error };
}

function isNear(got: number | bigint, want: number | bigint, { relative, least }: Tolerance): boolean {
  if (typeof got === 'bigint' || typeof want === 'bigint') return BigInt(got) === BigInt(want);
  return got === want || (Number.isFinite(want) && Math.abs(got - want) <= relative * Math.abs(want) + least);
}

function differenceOf(
  one: Case,
  got: Result,
  want: Result,
  error: number,
  factor = 1,
): 'dtype' | 'shape' | 'value' | 'NaN' | null {
  if (typeof got === 'string' || typeof want === 'string') return got === want ? null : 'value';
  if (got.dtype !== want.dtype) return 'dtype';
  if (got.shape.join() !== want.shape.join()) return 'shape';
  let kind: 'value' | 'NaN' | null = null;
  const { relative, least } = toleranceOf(one, want, error);
  const tolerance = { relative: relative * factor, least: least * factor };
  for (let i = 0; i < want.elements.length; i++) {
    const [x, y] = [got.elements[i]!, want.elements[i]!];
    if (Number.isNaN(x) !== Number.isNaN(y)) kind ??= 'NaN';
    else if (!Number.isNaN(x) && !isNear(x, y, tolerance)) return 'value';
  }
  return kind;
}

const hasText = ([, got]: readonly [string, string | undefined]): boolean => got !== undefined;

/** Returns all differences. After a refusal it compares no numbers. */
export function compare(one: Case, ours: Answer, theirs: Answer): Difference[] {
  if (ours.crash !== undefined) return [{ kind: 'crash', text: ours.crash }];
  if (ours.raises !== undefined || theirs.raises !== undefined) {
    if (ours.raises !== undefined && theirs.raises !== undefined) return [];
    return ours.raises !== undefined
      ? [{ kind: 'raises', text: `here: ${ours.raises}; PyTorch: ${theirs.outs.map(show).join(', ')}` }]
      : [{ kind: 'computes', text: `PyTorch: ${theirs.raises}; here: ${ours.outs.map(show).join(', ')}` }];
  }
  if (ours.outs.length !== theirs.outs.length)
    return [{ kind: 'shape', text: `${ours.outs.length} results here, ${theirs.outs.length} of PyTorch` }];
  const error = 8 * theirs.error;
  const found: Difference[] = [];
  const sides = (got: Result | null, want: Result | null): string =>
    `\n    here    ${show(got)}\n    PyTorch ${show(want)}`;
  for (const [i, got] of ours.outs.entries()) {
    const want = theirs.outs[i]!;
    const kind = one.compares === 'kind' ? kindOnly(one, got, want) : differenceOf(one, got, want, error);
    if (kind) found.push({ kind, text: `result ${i}${sides(got, want)}` });
  }
  if (one.compares === 'kind') return found;
  const gradients = gradientDifferences(one, ours, theirs, error, sides);
  return [...found, ...gradients, ...secondDifferences(one, ours, theirs, error, sides)];
}

function kindOnly(one: Case, got: Result, want: Result): 'dtype' | 'shape' | null {
  const kind = differenceOf(one, got, want, Infinity);
  return kind === 'dtype' || kind === 'shape' ? kind : null;
}

function gradientDifferences(
  one: Case,
  ours: Answer,
  theirs: Answer,
  error: number,
  sides: (got: Value | null, want: Value | null) => string,
): Difference[] {
  if (ours.gradRaises !== undefined || theirs.gradRaises !== undefined) {
    if (ours.gradRaises !== undefined && theirs.gradRaises !== undefined) return [];
    const all = [
      ['gradient raises', ours.gradRaises],
      ['gradient computes', theirs.gradRaises],
    ] as const;
    const [kind, text] = all.find(hasText)!;
    return [{ kind, text: text! }];
  }
  return ours.grads.flatMap((got, i): Difference[] => {
    const want = theirs.grads[i]!;
    const text = `gradient ${i}${sides(got, want)}`;
    if (got === null || want === null) return got === want ? [] : [{ kind: 'gradient', text }];
    const kind = differenceOf(one, got, want, error);
    if (kind === null) return [];
    return [{ kind: kind === 'NaN' ? 'gradient NaN' : 'gradient', text }];
  });
}

const zeroLike = ({ dtype, shape, elements }: Value): Value => ({
  ...{ dtype, shape, elements: new Float64Array(elements.length) },
});

function secondDifferences(
  one: Case,
  ours: Answer,
  theirs: Answer,
  error: number,
  sides: (got: Value | null, want: Value | null) => string,
): Difference[] {
  if (theirs.seconds === undefined) return [];
  if (ours.secondRaises !== undefined)
    return [{ kind: 'second gradient', text: `here: ${ours.secondRaises}` }];
  if (ours.seconds === undefined) return [];
  const isZero = (value: Value | null): boolean =>
    value === null || Array.from(value.elements as ArrayLike<number>).every((x) => x === 0);
  return ours.seconds.flatMap((got, i): Difference[] => {
    const want = theirs.seconds![i]!;
    if (isZero(got) && isZero(want)) return [];
    // Rounding errors are those of several steps, and differences of large numbers occur.
    const isSame = differenceOf(one, got ?? zeroLike(want!), want ?? zeroLike(got!), error, 100) === null;
    return isSame ? [] : [{ kind: 'second gradient', text: `second gradient ${i}${sides(got, want)}` }];
  });
}
