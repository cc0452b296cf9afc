// Limits on gradients, applied between backward and the optimiser's step.
import { kernels } from '../backends/index.ts';
import { notParams } from '../checks/argument-errors.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { aNumber, checkValue, flag, isTensor, nonNegative } from '../checks/value-checks.ts';
import { noGrad, scope } from '../core/context.ts';
import { withStrides } from '../core/layout.ts';
import { empty, type Tensor } from '../core/tensor.ts';
import { nonfiniteNorm } from '../errors.ts';
import { clamp, norm, stack } from '../ops/index.ts';
import { gradOf } from './optimizer.ts';

/** Options of clipGradNorm(). */
export interface ClipOptions {
  /**
   * Order of the norm, as in norm(). Default 2; Infinity means the largest magnitude, −Infinity the smallest. 0 counts
   * the gradients that have an element other than 0.
   */
  readonly normType?: number;
  /** Whether to throw if the norm is NaN or infinite. Default false. */
  readonly errorIfNonfinite?: boolean;
}

const clipOptions = optionChecks<ClipOptions>({ normType: aNumber, errorIfNonfinite: flag });

/** Checks a limit, which may be Infinity for no limit. */
const limitCheck = { ...nonNegative, fits: (value: unknown) => typeof value === 'number' && value >= 0 };

/** Returns the parameters that have a gradient. Throws unless `params` is a list of tensors. */
function withGrad(op: string, params: Iterable<Tensor>): Tensor[] {
  const isList = typeof params === 'object' && params !== null && Symbol.iterator in params;
  const list = isList ? [...params] : [];
  const odd: unknown = isList ? list.find((param) => !isTensor(param)) : params;
  if (!isList || odd !== undefined) throw notParams(`${op}: params`, 'a list of tensors', odd);
  return list.filter((param) => gradOf(param));
}

/**
 * Returns the norm of all gradients, as of one long vector, without dimensions: float64 if one gradient is, else
 * float32.
 */
function normOf(params: readonly Tensor[], normType: number): Tensor {
  const dtype = params.some((param) => param.dtype === 'float64') ? 'float64' : 'float32';
  // The kernel reads float32 and float64, and its result is float32.
  if (normType === 2 && params.every((param) => param.dtype === 'float32')) {
    const out = empty('float32', [], params[0]?.device);
    const grads = params.map((param) => gradOf(param)!.dense);
    kernels().totalNorm(
      out.strided,
      grads,
      params.map((param) => param.count),
    );
    return out;
  }
  if (params.length === 0) return empty('float32', []).zero_();
  return scope(() => {
    const norms = params.map((param) => norm(param.grad!.to(dtype), undefined, { p: normType }));
    return norm(stack(norms), undefined, { p: normType });
  });
}

/** Multiplies all gradients by one number: in float64 those that are float64, in float32 all others. */
function scaleGrads(params: readonly Tensor[], factor: Tensor): void {
  const single = params.filter((param) => param.dtype === 'float32');
  kernels().scale(
    single.map((param) => gradOf(param)!.dense),
    single.map((param) => param.count),
    factor.to('float32').strided,
    null,
  );
  // The kernel above takes no 16-bit floats, and reads its factor in float32.
  for (const param of params) {
    if (param.dtype === 'float32') continue;
    const grad = gradOf(param)!.dense;
    kernels().map('mul', param.dtype, [param.count], grad, grad, withStrides(factor.strided, [0]));
  }
}

/**
 * Multiplies all gradients by one factor, at most 1, so that their norm, as of one long vector, is at most `maxNorm`. A
 * norm that is NaN or infinite makes gradients NaN or 0, unless `errorIfNonfinite` is set. Returns the previous norm, a
 * tensor without dimensions: float64 if one gradient is, else float32. All parameters must be on one device.
 */
export function clipGradNorm(params: Iterable<Tensor>, maxNorm: number, options: ClipOptions = {}): Tensor {
  const own = withGrad('clipGradNorm', params);
  checkOptions('clipGradNorm', options, clipOptions);
  checkValue('clipGradNorm: maxNorm', maxNorm, limitCheck);
  const { normType = 2, errorIfNonfinite = false } = options;
  return noGrad(() => {
    const total = normOf(own, normType);
    if (errorIfNonfinite && !Number.isFinite(total.item())) throw nonfiniteNorm(total.item());
    scope(() => scaleGrads(own, clamp(total.add(1e-6).pow(-1).mul(maxNorm), null, 1)));
    return total;
  });
}

/** Clamps every element of every gradient to [−limit, limit]. */
export function clipGradValue(params: Iterable<Tensor>, limit: number): void {
  const own = withGrad('clipGradValue', params);
  checkValue('clipGradValue: limit', limit, limitCheck);
  for (const param of own) {
    const grad = gradOf(param)!.dense;
    kernels().map('clamp', param.dtype, [param.count], grad, grad, -limit, limit);
  }
}
