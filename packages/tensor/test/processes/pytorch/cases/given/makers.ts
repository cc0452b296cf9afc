// Helpers of the cases in this folder.
import type { Arg, Ref, View } from '../../case.ts';
import type { Draft, TensorSpec } from '../../draft.ts';

/** Cases by the name of their operation. */
export type Cases = Readonly<Record<string, readonly ((d: Draft) => void)[]>>;

export type Values = readonly (number | string)[];

export const f32 = (d: Draft, values: Values, shape: readonly number[] = [values.length]): Ref =>
  d.given(values, shape);

export const i64 = (d: Draft, values: Values, shape: readonly number[] = [values.length]): Ref =>
  d.given(values, shape, 'int64');

export const bool = (d: Draft, values: Values): Ref => d.given(values, [values.length], 'bool');

export const ramp = (d: Draft, shape: readonly number[], dtype: TensorSpec['dtype'] = 'float32'): Ref =>
  d.given(
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => ((i * 5) % 7) - 3),
    shape,
    dtype,
  );

/** Lets the op see the last input through a view. Returns the input. */
export function through(d: Draft, input: Ref, view: View): Ref {
  d.inputs.push({ ...d.inputs.pop()!, views: [view] });
  return input;
}

/** Returns a case that calls an op with the arguments that a function makes. */
export const one =
  (op: string, make: (d: Draft) => readonly Arg[]) =>
  (d: Draft): void =>
    d.call(op, ...make(d));

/** Returns cases of a reduction with the same dimension twice. */
export const twice = (op: string): readonly ((d: Draft) => void)[] => [
  one(op, (d) => [ramp(d, [2, 3]), [0, 0]]),
  one(op, (d) => [ramp(d, [2, 3]), [1, -1]]),
];

export const same = (count: number, value: number): number[] => new Array<number>(count).fill(value);
