// Limits on gradients, applied between backward and the optimiser's step.
import { kernels } from '../backends/index.ts';
import { notParams } from '../checks/argument-errors.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { aNumber, checkValue, flag, isTensor, nonNegative } from '../checks/value-checks.ts';
import { noGrad, scope } from '../core/context.ts';
import { empty, type Tensor } from '../core/tensor.ts';
import { badOption, nonfiniteNorm, shown } from '../errors.ts';
import { abs, clamp, max, pow, stack, sum } from '../ops/index.ts';
import { gradOf } from './optimizer.ts';

/** Options of clipGradNorm(). */
export interface ClipOptions {
  /** Order of the norm. Default 2; Infinity means the largest magnitude. */
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

/** Returns the norm of all gradients, as of one long vector: float32, without dimensions. */
function normOf(params: readonly Tensor[], normType: number): Tensor {
  if (normType === 2) {
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
    const grads = params.map((param) => abs(param.grad!).to('float32'));
    if (normType === Infinity) return max(stack(grads.map((grad) => max(grad))));
    return pow(sum(stack(grads.map((grad) => sum(pow(grad, normType))))), 1 / normType);
  });
}

/**
 * Multiplies all gradients by one factor, at most 1, so that their norm, as of one long vector, is at most `maxNorm`. A
 * norm that is NaN or infinite makes gradients NaN or 0, unless `errorIfNonfinite` is set. Returns the previous norm, a
 * float32 tensor without dimensions. All parameters must be on one device.
 */
export function clipGradNorm(params: Iterable<Tensor>, maxNorm: number, options: ClipOptions = {}): Tensor {
  const own = withGrad('clipGradNorm', params);
  checkOptions('clipGradNorm', options, clipOptions);
  checkValue('clipGradNorm: maxNorm', maxNorm, limitCheck);
  const { normType = 2, errorIfNonfinite = false } = options;
  if (!(normType > 0)) throw badOption('clipGradNorm: normType', 'a number > 0', shown(normType));
  return noGrad(() => {
    const norm = normOf(own, normType);
    if (errorIfNonfinite && !Number.isFinite(norm.item())) throw nonfiniteNorm(norm.item());
    scope(() => {
      const factor = clamp(norm.add(1e-6).pow(-1).mul(maxNorm), null, 1);
      kernels().scale(
        own.map((param) => gradOf(param)!.dense),
        own.map((param) => param.count),
        factor.strided,
        null,
      );
    });
    return norm;
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
