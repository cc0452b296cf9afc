// Sums of products and quotients of three tensors, and mixtures of two.
import { notOfBool } from '../../../checks/argument-errors.ts';
import { fractionForIntegers, needsOneDtype } from '../../../checks/op-errors.ts';
import { checkOptions, optionChecks } from '../../../checks/options.ts';
import { anyNumber } from '../../../checks/value-checks.ts';
import { isFloat, resultType } from '../../../core/dtype.ts';
import { broadcastShapes, type Shape } from '../../../core/shape.ts';
import { type Operand, Tensor } from '../../../core/tensor.ts';
import { needsFloat, notATensor } from '../../../errors.ts';
import { requireFloat, requireOperand, requireTensor } from '../convert.ts';
import { evaluate, type Formula, type Steps } from '../formula.ts';

/** Options of addcmul and addcdiv. */
export interface AddcOptions {
  /** The factor of the product or quotient. Default 1; an integer for integers. */
  readonly value?: number;
}
const addcOptions = optionChecks<AddcOptions>({ value: anyNumber });

function jointShapeOf(name: string, ...tensors: readonly Tensor[]): Shape {
  return tensors.map(({ shape }) => shape).reduce((a, b) => broadcastShapes(name, a, b));
}

/** Computes a + value × b × c. All are broadcast. Throws for bool, and for a fraction as `value` of integers. */
export function addcmul(a: Tensor, b: Tensor, c: Tensor, options: AddcOptions = {}): Tensor {
  requireTensor('addcmul', a);
  requireOperand('addcmul', 'the first factor', b);
  requireOperand('addcmul', 'the second factor', c);
  checkOptions('addcmul', options, addcOptions);
  const { value = 1 } = options;
  const dtype = resultType(a, b, c);
  if (dtype === 'bool') throw notOfBool('addcmul', "logicalAnd and logicalOr, or .to('uint8')");
  if (!isFloat(dtype) && !Number.isInteger(value)) throw fractionForIntegers('addcmul', 'value', value);
  const times = (i: number): Formula['slopes'][number] => {
    return (k, into, grad, { inputs }) => {
      const factor = k.temporary();
      k.map('mul', factor, inputs[i]!, value);
      k.map('mul', into, factor, grad);
    };
  };
  const steps: Steps = (k, out, x, y, z) => {
    if (value === 1) {
      k.map('mulAdd', out, y!, z!, x!);
      return;
    }
    const product = k.temporary();
    k.map('mul', product, y!, value);
    k.map('mulAdd', out, product, z!, x!);
  };
  const formula: Formula = { name: 'addcmul', steps, slopes: ['same', times(2), times(1)] };
  return evaluate(formula, dtype, jointShapeOf('addcmul', a, b, c), [a, b, c]);
}

/** Computes a + value × b ÷ c. All are broadcast. Throws unless one is a float. */
export function addcdiv(a: Tensor, b: Tensor, c: Tensor, options: AddcOptions = {}): Tensor {
  requireTensor('addcdiv', a);
  requireOperand('addcdiv', 'the dividend', b);
  requireOperand('addcdiv', 'the divisor', c);
  checkOptions('addcdiv', options, addcOptions);
  const { value = 1 } = options;
  const dtype = resultType(a, b, c);
  // As in PyTorch, a division of integers is refused, also where it is added to floats.
  for (const all of [
    [b, c],
    [a, b, c],
  ]) {
    const own = resultType(...all);
    if (!isFloat(own)) throw needsFloat('addcdiv', own);
  }
  const formula: Formula = {
    name: 'addcdiv',
    steps: (k, out, x, y, z) => {
      const quotient = k.temporary();
      k.map('mul', quotient, y!, value);
      k.map('div', quotient, quotient, z!);
      k.map('add', out, x!, quotient);
    },
    slopes: [
      'same',
      (k, into, grad, { inputs: [, , z] }) => {
        const factor = k.temporary();
        k.map('div', factor, value, z!);
        k.map('mul', into, factor, grad);
      },
      (k, into, grad, { inputs: [, y, z] }) => {
        const [factor, square] = [k.temporary(), k.temporary()];
        k.map('mul', factor, y!, -value);
        k.map('square', square, z!);
        k.map('div', factor, factor, square);
        k.map('mul', into, factor, grad);
      },
    ],
  };
  return evaluate(formula, dtype, jointShapeOf('addcdiv', a, b, c), [a, b, c]);
}

/** Computes a + weight × (end − a), from `end` where that is nearer, so that weight 1 gives `end` itself. */
const mix: Steps = (k, out, a, end, weight) => {
  const [way, near] = [k.temporary(), k.temporary()];
  k.map('sub', way, end!, a!);
  if (typeof weight === 'number') {
    if (Math.abs(weight) < 0.5) k.map('mulAdd', out, way, weight, a!);
    else {
      k.map('mul', way, way, 1 - weight);
      k.map('sub', out, end!, way);
    }
    return;
  }
  const rest = k.temporary();
  k.map('mulAdd', near, way, weight!, a!);
  k.map('sub', rest, 1, weight!);
  k.map('mul', rest, rest, way);
  k.map('sub', way, end!, rest);
  k.map('abs', rest, weight!);
  k.map('lt', rest, rest, 0.5);
  k.map('where', out, rest, near, way);
};

const lerpFormula: Formula = {
  name: 'lerp',
  steps: mix,
  slopes: [
    (k, into, grad, { inputs: [, , weight] }) => {
      const rest = typeof weight === 'number' ? 1 - weight : k.temporary();
      if (typeof rest !== 'number') k.map('sub', rest, 1, weight!);
      k.map('mul', into, grad, rest);
    },
    (k, into, grad, { inputs: [, , weight] }) => k.map('mul', into, grad, weight!),
    (k, into, grad, { inputs: [a, end] }) => {
      const way = k.temporary();
      k.map('sub', way, end!, a!);
      k.map('mul', into, way, grad);
    },
  ],
};

/** Mixes two tensors: a where the weight is 0, `end` where it is 1. All tensors have one dtype of floats. */
export function lerp(a: Tensor, end: Tensor, weight: Operand): Tensor {
  requireFloat('lerp', a);
  requireOperand('lerp', 'end', end);
  if (!(weight instanceof Tensor) && typeof weight !== 'number') throw notATensor('lerp', weight);
  const tensors = [a, end, ...(weight instanceof Tensor ? [weight] : [])];
  for (const { dtype } of tensors) if (dtype !== a.dtype) throw needsOneDtype('lerp', a.dtype, dtype);
  return evaluate(lerpFormula, a.dtype, jointShapeOf('lerp', ...tensors), [a, end, weight]);
}
