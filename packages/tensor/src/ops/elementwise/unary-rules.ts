// The gradients of functions of one element. Each rule names the value that the gradient reads, and writes grad × f′
// into `into`.
import type { MapOp } from '../../backends/declarations/names.ts';
import type { Strided } from '../../backends/operands.ts';
import type { Calculation } from '../gradient.ts';

export interface Rule {
  readonly saves: 'input' | 'output' | 'nothing';
  readonly gradient: (k: Calculation, into: Strided, grad: Strided, saved: Strided) => void;
}

/** Makes a rule whose gradient is one kernel over the input or the output. */
const fused = (saves: 'input' | 'output', op: MapOp): Rule => ({
  saves,
  gradient: (k, into, grad, saved) => k.map(op, into, grad, saved),
});

/** The rule of step functions: the gradient is 0. */
const flat: Rule = { saves: 'nothing', gradient: (k, into, grad) => k.map('where', into, 0, grad, 0) };

/** Makes a rule whose gradient is grad × factor × g(x), for a kernel g. */
const scaled = (op: MapOp, factor: number): Rule => ({
  saves: 'input',
  gradient: (k, into, grad, x) => {
    k.map(op, into, x);
    k.map('mul', into, into, grad);
    if (factor !== 1) k.map('mul', into, into, factor);
  },
});

/** Makes the rule whose gradient is grad × sign × 2/√π × e^(−x²). */
const bell = (sign: 1 | -1): Rule => ({
  saves: 'input',
  gradient: (k, into, grad, x) => {
    k.map('square', into, x);
    k.map('neg', into, into);
    k.map('exp', into, into);
    k.map('mul', into, into, (2 * sign) / Math.sqrt(Math.PI));
    k.map('mul', into, into, grad);
  },
});

/** Makes the rule of a logarithm: the gradient is grad ÷ (x × the natural logarithm of the base). */
const logarithm = (ofBase: number): Rule => ({
  saves: 'input',
  gradient: (k, into, grad, x) => {
    k.map('mul', into, x, ofBase);
    k.map('div', into, grad, into);
  },
});

/** Makes the rule whose gradient is grad × sign ÷ √(factor × x² + shift). */
const overRoot = (factor: 1 | -1, shift: 1 | -1, sign: 1 | -1): Rule => ({
  saves: 'input',
  gradient: (k, into, grad, x) => {
    k.map('square', into, x);
    k.map('mulAdd', into, into, factor, shift);
    k.map('rsqrt', into, into);
    k.map('mul', into, into, grad);
    if (sign < 0) k.map('neg', into, into);
  },
});

/** The functions of one element with their gradients. */
export const unaryRules = {
  neg: { saves: 'nothing', gradient: (k, into, grad) => k.map('neg', into, grad) },
  abs: scaled('sign', 1),
  sign: flat,
  exp: fused('output', 'mul'),
  log: fused('input', 'div'),
  sqrt: {
    saves: 'output',
    gradient: (k, into, grad, out) => {
      k.map('div', into, grad, out);
      k.map('mul', into, into, 0.5);
    },
  },
  rsqrt: {
    saves: 'output',
    gradient: (k, into, grad, out) => {
      k.map('square', into, out);
      k.map('mul', into, into, out);
      k.map('mul', into, into, grad);
      k.map('mul', into, into, -0.5);
    },
  },
  square: {
    saves: 'input',
    gradient: (k, into, grad, x) => {
      k.map('mul', into, grad, x);
      k.map('mul', into, into, 2);
    },
  },
  sin: scaled('cos', 1),
  cos: scaled('sin', -1),
  tanh: fused('output', 'tanhGrad'),
  sigmoid: fused('output', 'sigmoidGrad'),
  relu: fused('output', 'reluGrad'),
  erf: bell(1),
  erfc: bell(-1),
  // grad × ½√π × e^(out²)
  erfinv: {
    saves: 'output',
    gradient: (k, into, grad, out) => {
      k.map('square', into, out);
      k.map('exp', into, into);
      k.map('mul', into, into, Math.sqrt(Math.PI) / 2);
      k.map('mul', into, into, grad);
    },
  },
  log1p: {
    saves: 'input',
    gradient: (k, into, grad, x) => {
      k.map('add', into, x, 1);
      k.map('div', into, grad, into);
    },
  },
  expm1: {
    saves: 'output',
    gradient: (k, into, grad, out) => {
      k.map('add', into, out, 1);
      k.map('mul', into, into, grad);
    },
  },
  log2: logarithm(Math.LN2),
  log10: logarithm(Math.LN10),
  exp2: {
    saves: 'output',
    gradient: (k, into, grad, out) => {
      k.map('mul', into, grad, out);
      k.map('mul', into, into, Math.LN2);
    },
  },
  tan: {
    saves: 'output',
    gradient: (k, into, grad, out) => {
      k.map('mulAdd', into, out, out, 1);
      k.map('mul', into, into, grad);
    },
  },
  asin: overRoot(-1, 1, 1),
  acos: overRoot(-1, 1, -1),
  atan: {
    saves: 'input',
    gradient: (k, into, grad, x) => {
      k.map('mulAdd', into, x, x, 1);
      k.map('div', into, grad, into);
    },
  },
  sinh: scaled('cosh', 1),
  cosh: scaled('sinh', 1),
  asinh: overRoot(1, 1, 1),
  acosh: overRoot(1, -1, 1),
  atanh: {
    saves: 'input',
    gradient: (k, into, grad, x) => {
      k.map('square', into, x);
      k.map('sub', into, 1, into);
      k.map('div', into, grad, into);
    },
  },
  gelu: fused('input', 'geluGrad'),
  geluTanh: fused('input', 'geluTanhGrad'),
  silu: fused('input', 'siluGrad'),
  floor: flat,
  ceil: flat,
  round: flat,
  trunc: flat,
} satisfies Partial<Record<MapOp, Rule>>;
