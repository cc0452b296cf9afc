// Functions of one element that are one kernel each.

import { isRecording, record } from '../../autograd/node.ts';
import { floatMapOps, type MapOp } from '../../backends/declarations/names.ts';
import { kernels } from '../../backends/index.ts';
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
import { type Rule, unaryRules as rules } from './unary-rules.ts';

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

/**
 * Records `out` as the result of an activation of `a`, whose values are not read: the slope of these activations
 * follows from their results.
 */
export const activated = (op: 'tanh' | 'sigmoid' | 'relu', a: Tensor, out: Tensor): Tensor =>
  isRecording(a) ? recorded(op, a, out) : out;

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

/** Does the same as plain, but in float32 under autocast. */
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
/** Computes 1 − erf a, also where that is small. */
export const erfc = plain('erfc');
/** Computes the inverse of erf: ±∞ for ±1, NaN beyond. */
export const erfinv = plain('erfinv');
/** Computes log(1 + a), also for a near 0; under autocast in float32. */
export const log1p = raised('log1p');
/** Computes e to the power of a, minus 1, also for a near 0; under autocast in float32. */
export const expm1 = raised('expm1');
/** Computes the logarithm to base 2; under autocast in float32. */
export const log2 = raised('log2');
/** Computes the logarithm to base 10; under autocast in float32. */
export const log10 = raised('log10');
/** Computes 2 to the power of each element. */
export const exp2 = plain('exp2');
/** Computes the tangent of an angle in radians; under autocast in float32. */
export const tan = raised('tan');
/** Computes the angle in radians whose sine is given; NaN beyond ±1. Under autocast in float32. */
export const asin = raised('asin');
/** Computes the angle in radians whose cosine is given; NaN beyond ±1. Under autocast in float32. */
export const acos = raised('acos');
/** Computes the angle in radians whose tangent is given. */
export const atan = plain('atan');
/** Computes the hyperbolic sine; under autocast in float32. */
export const sinh = raised('sinh');
/** Computes the hyperbolic cosine; under autocast in float32. */
export const cosh = raised('cosh');
/** Computes the inverse of sinh. */
export const asinh = plain('asinh');
/** Computes the inverse of cosh; NaN below 1. */
export const acosh = plain('acosh');
/** Computes the inverse of tanh; ±∞ for ±1, NaN beyond. */
export const atanh = plain('atanh');
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
