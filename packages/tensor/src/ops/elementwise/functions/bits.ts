// Operations of integers: bits, shifts and common divisors. None has a gradient.
import type { MapOp } from '../../../backends/declarations/names.ts';
import { notOfBool } from '../../../checks/argument-errors.ts';
import { needsIntegers } from '../../../checks/op-errors.ts';
import { type DType, isFloat, resultType } from '../../../core/dtype.ts';
import type { Operand, Tensor } from '../../../core/tensor.ts';
import { comparable, jointShape } from '../binary.ts';
import { requireTensor } from '../convert.ts';
import { evaluate, type Formula, kernel } from '../formula.ts';

type Pair = (a: Operand, b: Operand) => Tensor;

function integersOf(name: string, a: Operand, b: Operand): DType {
  const dtype = resultType(a, b);
  if (isFloat(dtype)) throw needsIntegers(name, dtype);
  return dtype;
}

function compute(formula: Formula, a: Operand, b: Operand, dtype: DType): Tensor {
  const { name } = formula;
  const shape = jointShape(name, a, b);
  return evaluate(formula, dtype, shape, [comparable(name, a, dtype), comparable(name, b, dtype)]);
}

const bits =
  (name: string, op: MapOp): Pair =>
  (a, b) => {
    jointShape(name, a, b);
    return compute({ name, steps: kernel(op), slopes: ['none', 'none'] }, a, b, integersOf(name, a, b));
  };

/** Makes a function that bool does not have. */
const ofIntegers =
  (name: string, steps: Formula['steps']): Pair =>
  (a, b) => {
    jointShape(name, a, b);
    const dtype = integersOf(name, a, b);
    if (dtype === 'bool') throw notOfBool(name, "to('uint8')");
    return compute({ name, steps, slopes: ['none', 'none'] }, a, b, dtype);
  };

/** Computes the bitwise and of integers or bools, which are broadcast. */
export const bitwiseAnd = bits('bitwiseAnd', 'bitAnd');
/** Computes the bitwise or of integers or bools, which are broadcast. */
export const bitwiseOr = bits('bitwiseOr', 'bitOr');
/** Computes the bitwise exclusive or of integers or bools, which are broadcast. */
export const bitwiseXor = bits('bitwiseXor', 'bitXor');

/** Inverts all bits of integers; of bools, swaps true and false. */
export function bitwiseNot(a: Tensor): Tensor {
  requireTensor('bitwiseNot', a);
  if (isFloat(a.dtype)) throw needsIntegers('bitwiseNot', a.dtype);
  const formula: Formula = {
    name: 'bitwiseNot',
    steps: (k, out, x) => (a.dtype === 'bool' ? k.map('logicalNot', out, x!) : k.map('bitXor', out, x!, -1)),
    slopes: ['none'],
  };
  return evaluate(formula, a.dtype, a.shape, [a]);
}

/** Shifts the bits of a to the left by b; the result is 0 if b is below 0 or beyond the last bit. Throws for bool. */
export const bitwiseLeftShift = ofIntegers('bitwiseLeftShift', kernel('shiftLeft'));
/** Shifts the bits of a to the right by b and keeps the sign; b below 0 shifts all bits out. Throws for bool. */
export const bitwiseRightShift = ofIntegers('bitwiseRightShift', kernel('shiftRight'));
/** Computes the greatest common divisor, which is not negative. Throws for bool. */
export const gcd = ofIntegers('gcd', kernel('gcd'));
/** Computes the least common multiple, which is not negative; 0 where an operand is 0. Throws for bool. */
export const lcm = ofIntegers('lcm', (k, out, a, b) => {
  const share = k.temporary();
  k.map('gcd', share, a!, b!);
  k.map('floorDiv', share, a!, share);
  k.map('mul', share, share, b!);
  k.map('abs', out, share);
});
