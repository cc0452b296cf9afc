// Extremes that ignore NaN, powers in float64 and of two, and the unary plus.
import { notOfBool } from '../../../checks/argument-errors.ts';
import { scope } from '../../../core/context.ts';
import { isFloat, isHalf, resultType } from '../../../core/dtype.ts';
import { type Operand, Tensor } from '../../../core/tensor.ts';
import { comparable, jointShape, maximum, minimum, mul, pow } from '../binary.ts';
import { requireTensor, to } from '../convert.ts';
import { evaluate, type Formula, floatOf, type Steps } from '../formula.ts';

/**
 * Writes 1 where the first operand is selected: where it is the extreme, also of equal ones, or the other one is NaN.
 */
const takesFirst =
  (isLargest: boolean): Steps =>
  (k, into, a, b) => {
    const isNumber = k.temporary();
    k.map('eq', isNumber, b!, b!);
    if (isLargest) k.map('le', into, b!, a!);
    else k.map('le', into, a!, b!);
    k.map('where', into, isNumber, into, 1);
  };

const extreme = (name: string, isLargest: boolean): Formula => {
  const choice = takesFirst(isLargest);
  return {
    name,
    steps: (k, out, a, b) => {
      const isFirst = k.temporary();
      choice(k, isFirst, a!, b!);
      k.map('where', out, isFirst, a!, b!);
    },
    slopes: [0, 1].map((i) => (k, into, grad, { inputs }) => {
      const isFirst = k.temporary();
      choice(k, isFirst, ...inputs);
      if (i === 0) k.map('where', into, isFirst, grad, 0);
      else k.map('where', into, isFirst, 0, grad);
    }),
  };
};

const formulas = { fmax: extreme('fmax', true), fmin: extreme('fmin', false) };

function extremeOf(name: 'fmax' | 'fmin', a: Operand, b: Operand): Tensor {
  const shape = jointShape(name, a, b);
  const dtype = resultType(a, b);
  if (!isFloat(dtype)) return name === 'fmax' ? maximum(a, b) : minimum(a, b);
  return evaluate(formulas[name], dtype, shape, [comparable(name, a, dtype), comparable(name, b, dtype)]);
}

/** Returns the larger of two operands; if one is NaN, the other one. Of equal operands the first gets the gradient. */
export const fmax = (a: Operand, b: Operand): Tensor => extremeOf('fmax', a, b);
/** Returns the smaller of two operands; if one is NaN, the other one. Of equal operands the first gets the gradient. */
export const fmin = (a: Operand, b: Operand): Tensor => extremeOf('fmin', a, b);

/** Computes a to the power b in float64, for all dtypes. */
export function floatPower(a: Operand, b: Operand): Tensor {
  jointShape('floatPower', a, b);
  const wide = (operand: Operand): Operand => (operand instanceof Tensor ? to(operand, 'float64') : operand);
  return scope(() => pow(wide(a), wide(b)));
}

/** Computes a × 2^b, in float32 for 16-bit floats. Integers become float32. */
export function ldexp(a: Tensor, b: Operand): Tensor {
  requireTensor('ldexp', a);
  jointShape('ldexp', a, b);
  if (typeof b === 'number') return scope(() => mul(to(a, floatOf(a.dtype)), 2 ** b));
  const dtype = floatOf(resultType(a, b));
  const wide = isHalf(dtype) ? 'float32' : dtype;
  return scope(() => to(mul(to(a, wide), pow(2, to(b, wide))), dtype));
}

/** Returns a tensor over the same elements, as PyTorch's unary plus does. Throws for bool. */
export function positive(a: Tensor): Tensor {
  requireTensor('positive', a);
  if (a.dtype === 'bool') throw notOfBool('positive', "where, or .to('uint8')");
  return a;
}
