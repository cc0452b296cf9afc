// Functions of two broadcast operands beyond arithmetic: angles, logarithms, remainders.
import { notOfBool } from '../../../checks/argument-errors.ts';
import { dividedByZero, needsOneDtype } from '../../../checks/op-errors.ts';
import { scope } from '../../../core/context.ts';
import { type DType, isFloat, resultType } from '../../../core/dtype.ts';
import { countOf } from '../../../core/shape.ts';
import { type Operand, Tensor } from '../../../core/tensor.ts';
import { needsFloat } from '../../../errors.ts';
import { any } from '../../reduce/reduce.ts';
import { comparable, eq, jointShape } from '../binary.ts';
import { requireOperand, requireTensor } from '../convert.ts';
import { evaluate, type Formula, floatOf, kernel, type Slope } from '../formula.ts';

/** A function of two operands, which are broadcast. One of them may be a number. */
type Pair = (a: Operand, b: Operand) => Tensor;

/** Makes a function whose result is a float, also for integers and bool. */
const ofAnything =
  (formula: Formula): Pair =>
  (a, b) => {
    const shape = jointShape(formula.name, a, b);
    return evaluate(formula, floatOf(resultType(a, b)), shape, [a, b]);
  };

/** Makes a function that integers do not have. */
const ofFloats =
  (formula: Formula): Pair =>
  (a, b) => {
    const shape = jointShape(formula.name, a, b);
    const dtype = resultType(a, b);
    if (!isFloat(dtype)) throw needsFloat(formula.name, dtype);
    return evaluate(formula, dtype, shape, [a, b]);
  };

/** Makes the gradient of one operand of atan2: grad × sign × the other operand ÷ (a² + b²), and 0 in the origin. */
const ofAngle =
  (other: 0 | 1, sign: 1 | -1): Slope =>
  (k, into, grad, { inputs }) => {
    const [share, square] = [k.temporary(), k.temporary()];
    k.map('square', square, inputs[0]!);
    k.map('mulAdd', square, inputs[1]!, inputs[1]!, square);
    k.map('div', share, inputs[other]!, square);
    k.map('where', share, square, share, 0);
    if (sign < 0) k.map('neg', share, share);
    k.map('mul', into, share, grad);
  };

/** Computes the angle in radians of the points (b, a), from −π to π. Integers become float32. */
export const atan2 = ofAnything({
  name: 'atan2',
  steps: kernel('atan2'),
  slopes: [ofAngle(1, 1), ofAngle(0, -1)],
});

/** Computes √(a² + b²), without overflow of the squares. Throws unless an operand is a float. */
export const hypot = ofFloats({
  name: 'hypot',
  steps: kernel('hypot'),
  readsOutput: true,
  slopes: [0, 1].map((i) => (k, into, grad, { inputs, out }) => {
    const share = k.temporary();
    k.map('div', share, inputs[i]!, out);
    k.map('mul', into, share, grad);
  }),
});

/** Returns |a| with the sign of b, also that of −0. The gradient of b is 0. Integers become float32. */
export const copysign = ofAnything({
  name: 'copysign',
  steps: kernel('copysign'),
  readsOutput: true,
  slopes: [
    (k, into, grad, { inputs: [a], out }) => {
      const sign = k.temporary();
      k.map('div', sign, out, a!);
      k.map('where', sign, a!, sign, 0);
      k.map('mul', into, sign, grad);
    },
    (k, into, grad) => k.map('where', into, 0, grad, 0),
  ],
});

/** Makes the formula of the logarithm of a sum of two powers, by the kernel for powers of e. */
const logOfSum = (name: string, ofBase: number): Formula => ({
  name,
  steps: (k, out, a, b) => {
    if (ofBase === 1) {
      k.map('logAddExp', out, a!, b!);
      return;
    }
    const [x, y] = [k.temporary(), k.temporary()];
    k.map('mul', x, a!, ofBase);
    k.map('mul', y, b!, ofBase);
    k.map('logAddExp', x, x, y);
    k.map('div', out, x, ofBase);
  },
  // grad × sigmoid(own − other), to the base
  slopes: [0, 1].map((i) => (k, into, grad, { inputs }) => {
    const share = k.temporary();
    k.map('sub', share, inputs[i]!, inputs[1 - i]!);
    if (ofBase !== 1) k.map('mul', share, share, ofBase);
    k.map('sigmoid', share, share);
    k.map('mul', into, share, grad);
  }),
});

/** Computes log(eᵃ + eᵇ), without overflow. Throws unless an operand is a float. */
export const logaddexp = ofFloats(logOfSum('logaddexp', 1));
/** Computes the logarithm to base 2 of 2ᵃ + 2ᵇ, without overflow. Throws unless an operand is a float. */
export const logaddexp2 = ofFloats(logOfSum('logaddexp2', Math.LN2));

/** Computes a × log b; 0 where a is 0, unless b is NaN. Integers become float32. */
export const xlogy = ofAnything({
  name: 'xlogy',
  steps: kernel('xlogy'),
  slopes: [
    (k, into, grad, { inputs: [a, b] }) => {
      const [isFlat, isLow] = [k.temporary(), k.temporary()];
      k.map('eq', isFlat, a!, 0);
      k.map('le', isLow, b!, 0);
      k.map('mul', isFlat, isFlat, isLow);
      k.map('xlogy', isLow, grad, b!);
      k.map('where', into, isFlat, 0, isLow);
    },
    (k, into, grad, { inputs: [a, b] }) => {
      k.map('mul', into, grad, a!);
      k.map('div', into, into, b!);
    },
  ],
});

/**
 * Throws where integers are divided by 0. Elements on a device are not looked at, because the host would wait for them.
 */
function checkDivisor(name: string, b: Operand): void {
  if (b === 0) throw dividedByZero(name);
  if (b instanceof Tensor && b.device === 'cpu' && scope(() => any(eq(b, 0)).item()) === 1)
    throw dividedByZero(name);
}

const ofQuotient =
  (formula: Formula): Pair =>
  (a, b) => {
    const { name } = formula;
    const shape = jointShape(name, a, b);
    const dtype: DType = resultType(a, b);
    if (dtype === 'bool') throw notOfBool(name, "to('uint8')");
    const [x, y] = [comparable(name, a, dtype), comparable(name, b, dtype)];
    if (!isFloat(dtype) && countOf(shape) > 0) checkDivisor(name, y);
    return evaluate(formula, dtype, shape, [x, y]);
  };

/**
 * Computes the remainder of floorDivide(a, b), which has the sign of b. Integers throw where b is 0; on a device they
 * give 0 there. Throws for bool.
 */
export const remainder = ofQuotient({
  name: 'remainder',
  steps: kernel('remainder'),
  slopes: [
    'same',
    (k, into, grad, { inputs: [a, b] }) => {
      const quotient = k.temporary();
      k.map('floorDiv', quotient, a!, b!);
      k.map('neg', quotient, quotient);
      k.map('mul', into, quotient, grad);
    },
  ],
});

/** Computes the remainder of a / b rounded towards 0, which has the sign of a. Has the rules of remainder(). */
export const fmod = ofQuotient({
  name: 'fmod',
  steps: kernel('fmod'),
  slopes: [
    'same',
    (k, into, grad, { inputs: [a, b] }) => {
      const quotient = k.temporary();
      k.map('div', quotient, a!, b!);
      k.map('trunc', quotient, quotient);
      k.map('neg', quotient, quotient);
      k.map('mul', into, quotient, grad);
    },
  ],
});

/**
 * Divides and rounds down, also integers. Has the rules of remainder. As in PyTorch, backward throws: there is no
 * gradient.
 */
export const floorDivide = ofQuotient({
  name: 'floorDivide',
  steps: kernel('floorDiv'),
  slopes: ['refused', 'refused'],
});

const heavisideFormula: Formula = {
  name: 'heaviside',
  steps: (k, out, a, values) => {
    const [isPositive, isZero] = [k.temporary(), k.temporary()];
    k.map('lt', isPositive, 0, a!);
    k.map('eq', isZero, a!, 0);
    k.map('where', out, isZero, values!, isPositive);
  },
  slopes: ['refused', 'refused'],
};

/** Returns 0 where a is below 0 or NaN, 1 where it is above, else the element of `values`, of the same dtype. */
export function heaviside(a: Tensor, values: Tensor): Tensor {
  requireTensor('heaviside', a);
  requireOperand('heaviside', 'values', values);
  if (a.dtype !== values.dtype) throw needsOneDtype('heaviside', a.dtype, values.dtype);
  return evaluate(heavisideFormula, a.dtype, jointShape('heaviside', a, values), [a, values]);
}
