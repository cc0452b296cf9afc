// Tests of elements, which return bools: NaN, infinities and signs.
import { type DType, dtypeInfo, isFloat, isHalf } from '../../../core/dtype.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { requireTensor } from '../convert.ts';
import { evaluate, type Steps } from '../formula.ts';

/** Returns the dtype to compute in: numbers beside 16 bits are then not rounded to these. */
const readingIn = (dtype: DType): DType => (isHalf(dtype) ? 'float32' : dtype);
const largest = (dtype: DType): number => dtypeInfo[readingIn(dtype)].most as number;

/** Computes a test. `steps` are for floats; `ofIntegers` for other dtypes. */
function test(name: string, a: Tensor, steps: (most: number) => Steps, ofIntegers: Steps): Tensor {
  requireTensor(name, a);
  const own = isFloat(a.dtype) ? steps(largest(a.dtype)) : ofIntegers;
  return evaluate({ name, steps: own, slopes: ['none'] }, 'bool', a.shape, [a], readingIn(a.dtype));
}

const never: Steps = (k, out, x) => k.map('ne', out, x!, x!);
const always: Steps = (k, out, x) => k.map('eq', out, x!, x!);

/** Returns true where an element is NaN. */
export const isnan = (a: Tensor): Tensor => test('isnan', a, () => never, never);

/** Returns true where an element is neither NaN nor infinite. */
export const isfinite = (a: Tensor): Tensor =>
  test('isfinite', a, (most) => (k, out, x) => k.map('inRange', out, x!, -most, most), always);

/** Returns true where an element is ∞ or −∞. */
export const isinf = (a: Tensor): Tensor =>
  test(
    'isinf',
    a,
    () => (k, out, x) => {
      const size = k.temporary();
      k.map('abs', size, x!);
      k.map('eq', out, size, Infinity);
    },
    never,
  );

/** Returns true where an element is ∞. */
export const isposinf = (a: Tensor): Tensor =>
  test('isposinf', a, () => (k, out, x) => k.map('eq', out, x!, Infinity), never);

/** Returns true where an element is −∞. */
export const isneginf = (a: Tensor): Tensor =>
  test('isneginf', a, () => (k, out, x) => k.map('eq', out, x!, -Infinity), never);

/** Returns true where an element is negative, also where it is −0 or a NaN with that sign. */
export const signbit = (a: Tensor): Tensor =>
  test(
    'signbit',
    a,
    () => (k, out, x) => {
      const sign = k.temporary();
      k.map('copysign', sign, 1, x!);
      k.map('lt', out, sign, 0);
    },
    (k, out, x) => k.map('lt', out, x!, 0),
  );
