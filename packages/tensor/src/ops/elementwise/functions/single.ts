// Functions of one element that are a few kernels each.
import { checkNumber } from '../../../checks/arguments.ts';
import { dtypeInfo, isFloat } from '../../../core/dtype.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { recast } from '../autocast.ts';
import { mul } from '../binary.ts';
import { clone, requireFloat, requireTensor } from '../convert.ts';
import { evaluate, type Formula, floatOf } from '../formula.ts';

const of = (formula: Formula, a: Tensor): Tensor => evaluate(formula, floatOf(a.dtype), a.shape, [a]);

const reciprocalFormula: Formula = {
  name: 'reciprocal',
  steps: (k, out, x) => k.map('div', out, 1, x!),
  readsOutput: true,
  slopes: [
    (k, into, grad, { out }) => {
      const slope = k.temporary();
      k.map('square', slope, out);
      k.map('neg', slope, slope);
      k.map('mul', into, slope, grad);
    },
  ],
};

/** Computes 1 / a; under autocast in float32. Integers become float32. */
export function reciprocal(a: Tensor): Tensor {
  requireTensor('reciprocal', a);
  return recast('float32', [a], (wide) => of(reciprocalFormula, wide!)) ?? of(reciprocalFormula, a);
}

const signFormula: Formula = {
  name: 'sgn',
  steps: (k, out, x) => k.map('sign', out, x!),
  slopes: [(k, into, grad) => k.map('where', into, 0, grad, 0)],
};

/** Returns −1, 0 or 1, as sign; PyTorch's other name also has complex numbers. */
export function sgn(a: Tensor): Tensor {
  requireTensor('sgn', a);
  return evaluate(signFormula, a.dtype, a.shape, [a]);
}

const fracFormula: Formula = {
  name: 'frac',
  steps: (k, out, x) => {
    const whole = k.temporary();
    k.map('trunc', whole, x!);
    k.map('sub', out, x!, whole);
  },
  slopes: ['same'],
};

/** Returns the fraction of each element, with its sign. Floats only. */
export function frac(a: Tensor): Tensor {
  requireFloat('frac', a);
  return evaluate(fracFormula, a.dtype, a.shape, [a]);
}

/**
 * Replaces NaN, ∞ and −∞, by default with 0 and the largest and the smallest number of the dtype. The gradient of a
 * replaced element is 0. Integers are copied.
 */
export function nanToNum(
  a: Tensor,
  nan = 0,
  posinf: number | null = null,
  neginf: number | null = null,
): Tensor {
  requireTensor('nanToNum', a);
  checkNumber('nanToNum', 'nan', nan);
  for (const [name, value] of Object.entries({ posinf, neginf }))
    if (value !== null) checkNumber('nanToNum', name, value);
  if (!isFloat(a.dtype)) return clone(a);
  const most = dtypeInfo[a.dtype].most as number;
  return evaluate(
    {
      name: 'nanToNum',
      steps: (k, out, x) => {
        const [isHit, number] = [k.temporary(), k.temporary()];
        k.map('eq', isHit, x!, x!);
        k.map('where', number, isHit, x!, nan);
        k.map('eq', isHit, x!, Infinity);
        k.map('where', number, isHit, posinf ?? most, number);
        k.map('eq', isHit, x!, -Infinity);
        k.map('where', out, isHit, neginf ?? -most, number);
      },
      slopes: [
        (k, into, grad, { inputs: [x] }) => {
          k.map('inRange', into, x!, -most, most);
          k.map('mul', into, into, grad);
        },
      ],
    },
    a.dtype,
    a.shape,
    [a],
  );
}

const sincFormula: Formula = {
  name: 'sinc',
  steps: (k, out, x) => {
    const [angle, sine] = [k.temporary(), k.temporary()];
    k.map('mul', angle, x!, Math.PI);
    k.map('sin', sine, angle);
    k.map('div', sine, sine, angle);
    k.map('where', out, x!, sine, 1);
  },
  slopes: [
    // (u cos u − sin u) ÷ (π x²) with u = π x, and 0 where x² is 0
    (k, into, grad, { inputs: [x] }) => {
      const [angle, sine] = [k.temporary(), k.temporary()];
      const [cosine, square] = [k.temporary(), k.temporary()];
      k.map('mul', angle, x!, Math.PI);
      k.map('cos', cosine, angle);
      k.map('sin', sine, angle);
      k.map('mul', square, angle, x!);
      k.map('neg', sine, sine);
      k.map('mulAdd', sine, angle, cosine, sine);
      k.map('div', sine, sine, square);
      k.map('mul', sine, sine, grad);
      k.map('where', into, square, sine, 0);
    },
  ],
};

/** Computes sin(π a) / (π a), and 1 where a is 0. Integers become float32. */
export function sinc(a: Tensor): Tensor {
  requireTensor('sinc', a);
  return of(sincFormula, a);
}

/**
 * Computes log(a / (1 − a)), the inverse of sigmoid. With `eps` ≥ 0, elements are limited to [eps, 1 − eps] before;
 * where these cross, elements below eps become eps. Integers become float32.
 */
export function logit(a: Tensor, eps: number | null = null): Tensor {
  requireTensor('logit', a);
  if (eps !== null) checkNumber('logit', 'eps', eps);
  // As in PyTorch, where −1 means no limit.
  if (eps !== null && eps < 0) return logit(a);
  const [low, high] = eps === null ? [0, 1] : [eps, 1 - eps];
  const formula: Formula = {
    name: 'logit',
    steps: (k, out, x) => {
      const [share, rest] = [k.temporary(), k.temporary()];
      if (eps === null) k.map('sub', rest, 1, x!);
      else {
        k.map('lt', rest, x!, low);
        k.map('min', share, x!, high);
        k.map('where', share, rest, low, share);
        k.map('sub', rest, 1, share);
      }
      k.map('div', share, eps === null ? x! : share, rest);
      k.map('log', out, share);
    },
    slopes: [
      (k, into, grad, { inputs: [x] }) => {
        const [slope, isOutside, isAbove] = [k.temporary(), k.temporary(), k.temporary()];
        k.map('sub', slope, 1, x!);
        // As in PyTorch, −0 counts as 0, which adding 0 makes of it.
        k.map('mulAdd', slope, slope, x!, 0);
        k.map('div', slope, grad, slope);
        k.map('lt', isOutside, x!, low);
        k.map('lt', isAbove, high, x!);
        k.map('max', isOutside, isOutside, isAbove);
        k.map('where', into, isOutside, eps === null ? NaN : 0, slope);
      },
    ],
  };
  return of(formula, a);
}

/** Converts degrees to radians. Integers become float32. */
export function deg2rad(a: Tensor): Tensor {
  requireTensor('deg2rad', a);
  return mul(a, Math.PI / 180);
}

/** Converts radians to degrees. Integers become float32. */
export function rad2deg(a: Tensor): Tensor {
  requireTensor('rad2deg', a);
  return mul(a, 180 / Math.PI);
}
