// Activations that are constant or straight in parts: their gradients compare the input with the ends of the parts.
import { crossedLimits, negativeLimit, notOfBool } from '../../../checks/argument-errors.ts';
import { checkNumber } from '../../../checks/arguments.ts';
import { checkValue, nonNegative } from '../../../checks/value-checks.ts';
import { dtypeInfo } from '../../../core/dtype.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { comparable } from '../binary.ts';
import { requireFloat, requireTensor } from '../convert.ts';
import { evaluate, type Slope } from '../formula.ts';

/** Makes the gradient that is 0 where the input is at most `low` or at least `high`. */
const between =
  (low: number, high: number): Slope =>
  (k, into, grad, { inputs: [x] }) => {
    const isAbove = k.temporary();
    k.map('le', isAbove, high, x!);
    k.map('le', into, x!, low);
    k.map('max', into, into, isAbove);
    k.map('where', into, into, 0, grad);
  };

/** Makes the gradient that is 0 from `low` to `high`, both included. */
const outside =
  (low: number, high: number): Slope =>
  (k, into, grad, { inputs: [x] }) => {
    k.map('inRange', into, x!, low, high);
    k.map('where', into, into, 0, grad);
  };

function bounded(name: string, a: Tensor, min: number, max: number): Tensor {
  requireTensor(name, a);
  if (a.dtype === 'bool') throw notOfBool(name, "where, or .to('uint8')");
  const [low, high] = [min, max].map((limit, i) => {
    checkNumber(name, i === 0 ? 'min' : 'max', limit);
    if (limit < 0 && dtypeInfo[a.dtype].least === 0) throw negativeLimit(name, limit, a.dtype);
    return comparable(name, limit, a.dtype) as number;
  }) as [number, number];
  if (low > high) throw crossedLimits(name, low, high);
  return evaluate(
    {
      name,
      steps: (k, out, x) => k.map('clamp', out, x!, low, high),
      slopes: [between(low, high)],
    },
    a.dtype,
    a.shape,
    [a],
  );
}

/**
 * Limits elements to [min, max]. Unlike that of clamp, the gradient on a limit is 0. Throws for bool, for limits that
 * cross, and for a limit below 0 with uint8.
 */
export const hardtanh = (a: Tensor, min = -1, max = 1): Tensor => bounded('hardtanh', a, min, max);
/** Limits elements to [0, 6]. The gradient on a limit is 0. Throws for bool. */
export const relu6 = (a: Tensor): Tensor => bounded('relu6', a, 0, 6);

/** Computes a / 6 + ½, limited to [0, 1]. Floats only. The gradient at ±3 and at NaN is 0. */
export function hardsigmoid(a: Tensor): Tensor {
  requireFloat('hardsigmoid', a);
  return evaluate(
    {
      name: 'hardsigmoid',
      steps: (k, out, x) => {
        const raised = k.temporary();
        k.map('add', raised, x!, 3);
        k.map('clamp', raised, raised, 0, 6);
        k.map('div', out, raised, 6);
      },
      slopes: [
        (k, into, grad, { inputs: [x] }) => {
          const isBelow = k.temporary();
          k.map('lt', isBelow, x!, 3);
          k.map('lt', into, -3, x!);
          k.map('mul', isBelow, isBelow, into);
          k.map('div', into, grad, 6);
          k.map('where', into, isBelow, into, 0);
        },
      ],
    },
    a.dtype,
    a.shape,
    [a],
  );
}

/** Computes a × hardsigmoid(a). Floats only. */
export function hardswish(a: Tensor): Tensor {
  requireFloat('hardswish', a);
  return evaluate(
    {
      name: 'hardswish',
      steps: (k, out, x) => {
        const raised = k.temporary();
        k.map('add', raised, x!, 3);
        k.map('clamp', raised, raised, 0, 6);
        k.map('mul', raised, raised, x!);
        k.map('div', out, raised, 6);
      },
      slopes: [
        (k, into, grad, { inputs: [x] }) => {
          // 0 up to −3, a / 3 + ½ below 3, else 1.
          const [slope, isPart] = [k.temporary(), k.temporary()];
          k.map('mulAdd', slope, x!, 1 / 3, 0.5);
          k.map('mul', slope, slope, grad);
          k.map('lt', isPart, x!, 3);
          k.map('where', slope, isPart, slope, grad);
          k.map('le', isPart, x!, -3);
          k.map('where', into, isPart, 0, slope);
        },
      ],
    },
    a.dtype,
    a.shape,
    [a],
  );
}

/** Returns a where it is above `threshold` or NaN, else `value`. Both must fit the dtype. Throws for bool. */
export function threshold(a: Tensor, threshold: number, value: number): Tensor {
  requireTensor('threshold', a);
  if (a.dtype === 'bool') throw notOfBool('threshold', "where, or .to('uint8')");
  checkNumber('threshold', 'threshold', threshold);
  checkNumber('threshold', 'value', value);
  const limit = comparable('threshold', threshold, a.dtype) as number;
  const other = comparable('threshold', value, a.dtype) as number;
  return evaluate(
    {
      name: 'threshold',
      steps: (k, out, x) => {
        const isLow = k.temporary();
        k.map('le', isLow, x!, limit);
        k.map('where', out, isLow, other, x!);
      },
      slopes: [
        (k, into, grad, { inputs: [x] }) => {
          k.map('le', into, x!, limit);
          k.map('where', into, into, 0, grad);
        },
      ],
    },
    a.dtype,
    a.shape,
    [a],
  );
}

/** Returns 0 where |a| ≤ lambda, else a. Floats only. */
export function hardshrink(a: Tensor, lambda = 0.5): Tensor {
  requireFloat('hardshrink', a);
  checkNumber('hardshrink', 'lambda', lambda);
  return evaluate(
    {
      name: 'hardshrink',
      steps: (k, out, x) => {
        const isSmall = k.temporary();
        k.map('inRange', isSmall, x!, -lambda, lambda);
        k.map('where', out, isSmall, 0, x!);
      },
      slopes: [outside(-lambda, lambda)],
    },
    a.dtype,
    a.shape,
    [a],
  );
}

/** Moves each element by lambda towards 0; 0 where |a| ≤ lambda, which must not be negative. Floats only. */
export function softshrink(a: Tensor, lambda = 0.5): Tensor {
  requireFloat('softshrink', a);
  checkValue('softshrink: lambda', lambda, nonNegative);
  return evaluate(
    {
      name: 'softshrink',
      // The distance from the range [−lambda, lambda].
      steps: (k, out, x) => {
        const near = k.temporary();
        k.map('clamp', near, x!, -lambda, lambda);
        k.map('sub', out, x!, near);
      },
      slopes: [outside(-lambda, lambda)],
    },
    a.dtype,
    a.shape,
    [a],
  );
}
