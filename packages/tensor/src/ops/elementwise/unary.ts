// Functions of one element. Each rule names the value that the gradient reads, and writes grad × f′ into `into`.

import { isRecording, record } from '../../autograd/node.ts';
import { floatMapOps, type MapOp } from '../../backends/declarations/names.ts';
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import { notOfBool } from '../../checks/argument-errors.ts';
import { checkOptions, optionChecks, refuseOptions } from '../../checks/options.ts';
import { oneOf } from '../../checks/value-checks.ts';
import { type DType, isFloat } from '../../core/dtype.ts';
import type { GeluOptions } from '../../core/op-options.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { needsFloat } from '../../errors.ts';
import { Calculation, contribute } from '../gradient.ts';
import { recast } from './autocast.ts';
import { clone, requireTensor } from './convert.ts';

interface Rule {
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

const rules = {
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
  erf: {
    saves: 'input',
    gradient: (k, into, grad, x) => {
      k.map('square', into, x);
      k.map('neg', into, into);
      k.map('exp', into, into);
      k.map('mul', into, into, 2 / Math.sqrt(Math.PI));
      k.map('mul', into, into, grad);
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

/** Functions that PyTorch has for floats only. */
const onlyOfFloats: ReadonlySet<MapOp> = new Set(['gelu', 'geluTanh', 'silu']);
/** Functions that PyTorch does not have for bool, with a replacement. */
const notOfBools: Partial<Record<MapOp, string>> = {
  neg: "logicalNot, or .to('int32')",
  abs: 'the tensor as it is',
  relu: 'the tensor as it is',
  floor: 'the tensor as it is',
  ceil: 'the tensor as it is',
  round: 'the tensor as it is',
  trunc: 'the tensor as it is',
};
/** Functions that leave integers as they are. */
const rounding: ReadonlySet<MapOp> = new Set(['floor', 'ceil', 'round', 'trunc']);

/** Returns the dtype of the result for integers and bool: float32 for exp and the like. Throws if there is none. */
function integerResult(op: keyof typeof rules, dtype: DType): DType {
  if (onlyOfFloats.has(op)) throw needsFloat(op === 'geluTanh' ? 'gelu' : op, dtype);
  const instead = notOfBools[op];
  if (dtype === 'bool' && instead !== undefined) throw notOfBool(op, instead);
  if (dtype === 'bool' && op === 'square') return 'int64';
  return floatMapOps.has(op) && !rounding.has(op) ? 'float32' : dtype;
}

function unary(op: keyof typeof rules, a: Tensor): Tensor {
  requireTensor(op, a);
  const isOfFloats = isFloat(a.dtype);
  const dtype = isOfFloats ? a.dtype : integerResult(op, a.dtype);
  if (!isOfFloats && rounding.has(op)) return clone(a);
  const out = empty(dtype, a.shape, a.device);
  kernels().map(op, dtype, a.shape, out.strided, a.strided);
  return isRecording(a) ? recorded(op, a, out) : out;
}

// A separate function, so that the variables which its closure captures are allocated only when it runs.
function recorded(op: keyof typeof rules, a: Tensor, out: Tensor): Tensor {
  const target = a.target!;
  const { dtype } = out;
  const { saves, gradient }: Rule = rules[op];
  const saved = saves === 'input' ? a : out;
  const { shape } = a;
  const values = saved.strided;
  return record(op, out, [target], saves === 'nothing' ? [] : [saved.storage], (grad, graph) => {
    const k = new Calculation(dtype, shape, grad.memory.device, graph);
    if (k.graph) {
      k.graph.bind(grad.dense, k.graph.grad);
      if (saves === 'input') k.graph.bind(values, k.graph.saved(values, shape, target));
      if (saves === 'output') k.graph.bind(values, k.graph.result(values, shape));
    }
    contribute(target, k, shape, (into) => gradient(k, into, grad.dense, values));
  });
}

const geluOptions = optionChecks<GeluOptions>({ approximate: oneOf('none', 'tanh') });

export function isTanhGelu(op: string, options: GeluOptions): boolean {
  checkOptions(op, options, geluOptions);
  return options.approximate === 'tanh';
}

type Unary = (a: Tensor) => Tensor;

/** Makes a public operation. A second argument is not part of its type; it is checked in order to refuse options. */
const plain =
  (op: keyof typeof rules): Unary =>
  (a: Tensor, extra?: unknown): Tensor => {
    if (extra !== undefined) refuseOptions(op, extra);
    return unary(op, a);
  };

/** Does what plain does, but under autocast in float32. */
const raised =
  (op: keyof typeof rules): Unary =>
  (a: Tensor, extra?: unknown): Tensor => {
    if (extra !== undefined) refuseOptions(op, extra);
    return recast('float32', [a], (wide) => unary(op, wide!)) ?? unary(op, a);
  };

/** Negates each element. */
export const neg = plain('neg');
/** Computes |a|. The gradient at 0 and at NaN is 0. */
export const abs = plain('abs');
/** Returns −1, 0 or 1; 0 for NaN, as in PyTorch. */
export const sign = plain('sign');
/** Computes e to the power of each element; under autocast in float32. */
export const exp = raised('exp');
/** Computes the natural logarithm; under autocast in float32. */
export const log = raised('log');
/** Computes the square root; NaN for negative elements. */
export const sqrt = plain('sqrt');
/** Computes 1 / √a. */
export const rsqrt = raised('rsqrt');
/** Squares each element. */
export const square = plain('square');
/** Computes the sine of an angle in radians. */
export const sin = plain('sin');
/** Computes the cosine of an angle in radians. */
export const cos = plain('cos');
/** Computes the hyperbolic tangent. */
export const tanh = plain('tanh');
/** Computes 1 / (1 + e⁻ᵃ). */
export const sigmoid = plain('sigmoid');
/** Computes max(a, 0). The gradient at 0 is 0. */
export const relu = plain('relu');
/** Computes the error function. */
export const erf = plain('erf');
/** Computes a × Φ(a), with the exact distribution function or its approximation by a tanh (as in GPT-2). */
export function gelu(a: Tensor, options: GeluOptions = {}): Tensor {
  return unary(isTanhGelu('gelu', options) ? 'geluTanh' : 'gelu', a);
}
/** Computes a × sigmoid(a). */
export const silu = plain('silu');
/** Rounds down. Like ceil, round and trunc, leaves integers as they are. */
export const floor = plain('floor');
/** Rounds up. */
export const ceil = plain('ceil');
/** Rounds to the nearest integer, halves to the even one. */
export const round = plain('round');
/** Rounds towards zero. */
export const trunc = plain('trunc');
