// Activations that are several kernels with exponentials, and prelu.

import type { Input, Strided } from '../../../backends/operands.ts';
import { zeroAlpha } from '../../../checks/argument-errors.ts';
import { checkNumber } from '../../../checks/arguments.ts';
import { badSlopes, slopeDtype } from '../../../checks/op-errors.ts';
import { scope } from '../../../core/context.ts';
import type { Tensor } from '../../../core/tensor.ts';
import type { Calculation } from '../../gradient.ts';
import { reshape } from '../../shape/views.ts';
import { recast } from '../autocast.ts';
import { requireFloat, requireOperand } from '../convert.ts';
import { evaluate, type Formula } from '../formula.ts';

/** The formula of scale × a for positive a, else of scale × alpha × (exp(a × inner) − 1). */
const exponentialBelow = (name: string, alpha: number, scale: number, inner: number): Formula => ({
  name,
  steps: (k, out, x) => {
    const [below, isBelow] = [k.temporary(), k.temporary()];
    k.map('mul', below, x!, inner);
    k.map('expm1', below, below);
    k.map('mul', below, below, alpha * scale);
    k.map('le', isBelow, x!, 0);
    if (scale === 1) k.map('where', out, isBelow, below, x!);
    else {
      const above = k.temporary();
      k.map('mul', above, x!, scale);
      k.map('where', out, isBelow, below, above);
    }
  },
  slopes: [
    (k, into, grad, { inputs: [x] }) => {
      const [slope, isBelow] = [k.temporary(), k.temporary()];
      k.map('le', isBelow, x!, 0);
      // An infinite power that is not chosen would make the second gradient NaN.
      k.map('where', slope, isBelow, x!, 0);
      k.map('mul', slope, slope, inner);
      k.map('exp', slope, slope);
      k.map('mul', slope, slope, inner * alpha * scale);
      k.map('where', slope, isBelow, slope, scale);
      k.map('mul', into, slope, grad);
    },
  ],
});

/** Returns a where it is positive, else alpha × (exp a − 1). Floats only. */
export function elu(a: Tensor, alpha = 1): Tensor {
  requireFloat('elu', a);
  checkNumber('elu', 'alpha', alpha);
  return evaluate(exponentialBelow('elu', alpha, 1, 1), a.dtype, a.shape, [a]);
}

/** Returns a where it is positive, else alpha × (exp(a / alpha) − 1). Floats only. `alpha` must not be 0. */
export function celu(a: Tensor, alpha = 1): Tensor {
  requireFloat('celu', a);
  checkNumber('celu', 'alpha', alpha);
  if (alpha === 0) throw zeroAlpha();
  return evaluate(exponentialBelow('celu', alpha, 1, 1 / alpha), a.dtype, a.shape, [a]);
}

const seluScale = 1.0507009873554805;
const seluAlpha = 1.6732632423543772;

/**
 * Returns elu with alpha 1.6733, times 1.0507: the factors with which layers keep mean 0 and variance 1. Floats only.
 */
export function selu(a: Tensor): Tensor {
  requireFloat('selu', a);
  return evaluate(exponentialBelow('selu', seluAlpha, seluScale, 1), a.dtype, a.shape, [a]);
}

/** Writes log(1 + exp x), without overflow, and with the digits of results near 0. `out` may be `x`. */
const softplusOf = (k: Calculation, out: Strided, x: Input): void => k.map('logAddExp', out, x, 0);

const mishFormula: Formula = {
  name: 'mish',
  steps: (k, out, x) => {
    const gate = k.temporary();
    softplusOf(k, gate, x!);
    k.map('tanh', gate, gate);
    k.map('mul', out, gate, x!);
  },
  slopes: [
    // gate + a × sigmoid(a) × (1 − gate²)
    (k, into, grad, { inputs: [x] }) => {
      const [gate, slope] = [k.temporary(), k.temporary()];
      softplusOf(k, gate, x!);
      k.map('tanh', gate, gate);
      k.map('sigmoid', slope, x!);
      k.map('mul', slope, slope, x!);
      k.map('tanhGrad', slope, slope, gate);
      k.map('add', slope, slope, gate);
      k.map('mul', into, slope, grad);
    },
  ],
};

/** Computes a × tanh(log(1 + exp a)). Floats only. */
export function mish(a: Tensor): Tensor {
  requireFloat('mish', a);
  return evaluate(mishFormula, a.dtype, a.shape, [a]);
}

const softplusFormula = (beta: number, threshold: number): Formula => ({
  name: 'softplus',
  steps: (k, out, x) => {
    const [curve, isLinear] = [k.temporary(), k.temporary()];
    k.map('mul', curve, x!, beta);
    k.map('lt', isLinear, threshold, curve);
    softplusOf(k, curve, curve);
    k.map('div', curve, curve, beta);
    k.map('where', out, isLinear, x!, curve);
  },
  slopes: [
    (k, into, grad, { inputs: [x] }) => {
      const [slope, isLinear] = [k.temporary(), k.temporary()];
      k.map('mul', slope, x!, beta);
      k.map('lt', isLinear, threshold, slope);
      if (k.graph === null) k.map('sigmoid', slope, slope);
      else {
        // At the threshold itself, the second gradient is 0 as above it, as in PyTorch.
        const isEdge = k.temporary();
        k.map('eq', isEdge, slope, threshold);
        k.map('sigmoid', slope, slope);
        k.map('where', slope, isEdge, 1 / (1 + Math.exp(-threshold)), slope);
      }
      k.map('where', slope, isLinear, 1, slope);
      k.map('mul', into, slope, grad);
    },
  ],
});

/** Computes log(1 + exp(beta × a)) ÷ beta, and returns a where beta × a is above `threshold`. Floats only. */
export function softplus(a: Tensor, beta = 1, threshold = 20): Tensor {
  requireFloat('softplus', a);
  const raised = recast('float32', [a], (wide) => softplus(wide!, beta, threshold));
  if (raised) return raised;
  checkNumber('softplus', 'beta', beta);
  checkNumber('softplus', 'threshold', threshold);
  return evaluate(softplusFormula(beta, threshold), a.dtype, a.shape, [a]);
}

const logSigmoidFormula: Formula = {
  name: 'logSigmoid',
  steps: (k, out, x) => {
    const sum = k.temporary();
    k.map('neg', sum, x!);
    softplusOf(k, sum, sum);
    k.map('sub', out, 0, sum); // neg would make -0 of 0
  },
  slopes: [
    (k, into, grad, { inputs: [x] }) => {
      const slope = k.temporary();
      k.map('neg', slope, x!);
      k.map('sigmoid', slope, slope);
      k.map('mul', into, slope, grad);
    },
  ],
};

/** Computes the logarithm of sigmoid(a), without overflow. Floats only. */
export function logSigmoid(a: Tensor): Tensor {
  requireFloat('logSigmoid', a);
  return evaluate(logSigmoidFormula, a.dtype, a.shape, [a]);
}

const preluFormula: Formula = {
  name: 'prelu',
  steps: (k, out, x, slope) => {
    const [scaled, isPositive] = [k.temporary(), k.temporary()];
    k.map('mul', scaled, x!, slope!);
    k.map('lt', isPositive, 0, x!);
    k.map('where', out, isPositive, x!, scaled);
  },
  slopes: [
    (k, into, grad, { inputs: [x, slope] }) => {
      const isPositive = k.temporary();
      k.map('lt', isPositive, 0, x!);
      k.map('mul', into, grad, slope!);
      k.map('where', into, isPositive, grad, into);
    },
    (k, into, grad, { inputs: [x] }) => {
      const isPositive = k.temporary();
      k.map('lt', isPositive, 0, x!);
      k.map('mul', into, grad, x!);
      k.map('where', into, isPositive, 0, into);
    },
  ],
};

/**
 * Returns a where it is positive, else a times a learned slope. `weight` has the dtype of `a`, and one element, or one
 * for each channel, which is dimension 1. Floats only.
 */
export function prelu(a: Tensor, weight: Tensor): Tensor {
  const lowered = recast('low', [a, weight], (x, slope) => prelu(x!, slope!));
  if (lowered) return lowered;
  requireFloat('prelu', a);
  requireOperand('prelu', 'weight', weight);
  if (weight.dtype !== a.dtype) throw slopeDtype(a.dtype, weight.dtype);
  const channels = a.rank > 1 ? a.shape[1]! : 1;
  if (weight.rank > 1 || (weight.count !== 1 && weight.count !== channels))
    throw badSlopes(weight.shape, channels, a.shape);
  return scope(() => {
    const slopes = reshape(
      weight,
      a.rank > 1 && weight.count === channels ? [channels, ...a.shape.slice(2).map(() => 1)] : [],
    );
    return evaluate(preluFormula, a.dtype, a.shape, [a, slopes]);
  });
}
