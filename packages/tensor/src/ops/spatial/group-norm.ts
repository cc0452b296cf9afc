// Normalisation over parts of one sample: groups of channels, single channels, and neighbouring channels.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import {
  atLeastOne,
  checkValue,
  finite,
  flag,
  nonNegative,
  tensorOrNull,
} from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { isHalf } from '../../core/dtype.ts';
import { withStrides } from '../../core/layout.ts';
import { allocate } from '../../core/memory/storage.ts';
import { countOf } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { badChannels, badOption, mixedDtypes, needsRank, noRunningStatistics, shown } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { add, div, mul, pow } from '../elementwise/binary.ts';
import {
  clone,
  contiguous,
  needsFloat32,
  requireFloat,
  requireOperand,
  requireTensor,
  to,
} from '../elementwise/convert.ts';
import { copy_ } from '../elementwise/in-place.ts';
import { square } from '../elementwise/unary.ts';
import { jointDevice } from '../joint-device.ts';
import { normalisedBy } from '../layers/batch-norm.ts';
import { avgPool2d } from '../layers/pool.ts';
import { mean } from '../reduce/reduce.ts';
import { expand, reshape } from '../shape/views.ts';
import { oneValuePerGroup } from './errors.ts';
import { pad } from './pad.ts';

/** Options of groupNorm(). */
export interface GroupNormOptions {
  /** [channels]; scales the result. */
  readonly weight?: Tensor | null;
  /** [channels]; added to the result. */
  readonly bias?: Tensor | null;
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number;
}

const groupNormOptions = optionChecks<GroupNormOptions>({
  weight: tensorOrNull,
  bias: tensorOrNull,
  eps: nonNegative,
});

/** Throws unless all are null or [channels], of one dtype: that of x, or float32 beside halves. */
function checkPerChannel(
  op: string,
  x: Tensor,
  all: Readonly<Record<string, Tensor | null>>,
  channels: number,
): void {
  for (const [name, tensor] of Object.entries(all)) {
    if (tensor === null) continue;
    requireOperand(op, name, tensor);
    if (tensor.rank !== 1 || tensor.shape[0] !== channels)
      throw badChannels(op, name, tensor.shape, channels);
    const isWider = isHalf(x.dtype) && tensor.dtype === 'float32';
    if (tensor.dtype !== x.dtype && !isWider) throw mixedDtypes(op, x.dtype, tensor.dtype);
    jointDevice(op, x, tensor);
  }
  const [first, ...others] = Object.values(all).flatMap((tensor) => (tensor ? [tensor.dtype] : []));
  const other = others.find((dtype) => dtype !== first);
  if (other !== undefined) throw mixedDtypes(op, first!, other);
}

/**
 * Normalises each of `groups` groups of channels of each sample of x [batch, channels, …] to mean 0 and variance 1,
 * then scales and shifts by channel. float16 and bfloat16 are computed in float32.
 */
export function groupNorm(x: Tensor, groups: number, options: GroupNormOptions = {}): Tensor {
  const raised = recast('float32', [x], (wide) => groupNorm(wide!, groups, options));
  if (raised) return raised;
  requireFloat('groupNorm', x);
  checkOptions('groupNorm', options, groupNormOptions);
  checkValue('groupNorm: groups', groups, atLeastOne);
  const { weight = null, bias = null, eps = 1e-5 } = options;
  if (x.rank < 2) throw needsRank('groupNorm', '2 or more', x.shape);
  const [batch, channels, ...rest] = x.shape as [number, number, ...number[]];
  if (channels % groups !== 0)
    throw badOption('groupNorm: groups', `a divisor of the ${channels} channels`, shown(groups));
  checkPerChannel('groupNorm', x, { weight, bias }, channels);
  const size = (channels / groups) * countOf(rest);
  if (batch * size === 1) throw oneValuePerGroup('groupNorm', x.shape);
  return scope(() => {
    const extent = { batch, groups, channels: channels / groups, inner: countOf(rest) };
    if (!needsFloat32(x)) return computed(contiguous(x), extent, weight, bias, eps);
    const [scale, shift] = [weight && to(weight, 'float32'), bias && to(bias, 'float32')];
    return to(computed(contiguous(to(x, 'float32')), extent, scale, shift, eps), x.dtype);
  });
}

interface Extent {
  readonly batch: number;
  readonly groups: number;
  /** Channels of a group. */
  readonly channels: number;
  readonly inner: number;
}

/** Normalises x, which is dense. */
function computed(
  x: Tensor,
  extent: Extent,
  weight: Tensor | null,
  bias: Tensor | null,
  eps: number,
): Tensor {
  const { dtype, device, shape } = x;
  const { batch, groups, channels, inner } = extent;
  const all = groups * channels;
  const gamma = weight && contiguous(weight);
  const beta = bias && contiguous(bias);
  const out = empty(dtype, shape, device);
  const [mean, rstd] = [allocate(dtype, batch * groups, device), allocate(dtype, batch * groups, device)];
  const [input, scale] = [x.strided, gamma?.strided ?? null];
  const parts = { mean: mean.dense, rstd: rstd.dense, a: input, gamma: scale };
  if (x.count > 0)
    kernels().groupNorm({ ...parts, out: out.strided, beta: beta?.strided ?? null }, { ...extent, eps });
  if (isRecording(x, gamma, beta)) {
    const [toX, toWeight, toBias] = [x.target, gamma?.target ?? null, beta?.target ?? null];
    const saved = [x.storage, mean, rstd, ...(gamma ? [gamma.storage] : [])];
    record('groupNorm', out, [toX, toWeight, toBias], saved, (grad, graph) => {
      if (graph) {
        const own = graphOf(graph);
        if (toBias) own.send(toBias, own.grad.reshape([batch, all, inner]).sum([0, 2]));
        const inputs = [{ strided: input, shape, target: toX }];
        if (scale) inputs.push({ strided: scale, shape: [all], target: toWeight });
        own.through(inputs, (a, factors) => {
          const rows = a!.reshape([batch * groups, channels * inner]);
          const centred = rows.sub(rows.mean(-1, true));
          const normed = centred.mul(centred.square().mean(-1, true).add(eps).rsqrt());
          if (!factors) return normed.reshape(shape);
          return normed
            .reshape([batch, all, inner])
            .mul(factors.reshape([all, 1]))
            .reshape(shape);
        });
        return;
      }
      const sums = allocate(dtype, 2 * batch * all, device);
      const { memory } = sums.dense;
      const gradIn = toX?.open() ?? null;
      if (memory.count > 0)
        kernels().groupNormGrad(
          { ...parts, gradOut: grad.dense, gradIn, sums: sums.dense },
          { ...extent, accumulate: toX?.isFilled ?? false },
        );
      for (const [i, target] of [toBias, toWeight].entries()) {
        if (target === null) continue;
        const into = target.begin();
        const perSample = { memory, offset: i * batch * all, strides: null };
        kernels().reduce('sum', [batch, all], withStrides(into.dense, [0, 1]), perSample);
        target.end(into);
      }
      toX?.close();
      sums.release();
    });
  }
  mean.release();
  rstd.release();
  return out;
}

/** Options of instanceNorm(). */
export interface InstanceNormOptions extends GroupNormOptions {
  /** True, the default: normalises by each channel of each sample. False: by the running statistics. */
  readonly useInputStats?: boolean;
  /** The fraction by which the running statistics move towards those of the input. Default 0.1. */
  readonly momentum?: number;
}

const instanceNormOptions = optionChecks<InstanceNormOptions>({
  weight: tensorOrNull,
  bias: tensorOrNull,
  eps: nonNegative,
  useInputStats: flag,
  momentum: finite,
});

/**
 * Normalises each channel of each sample of x [batch, channels, …]. `runningMean` and `runningVar` [channels] move
 * towards the means over the batch of its statistics, or replace these if `useInputStats` is false. float16 and
 * bfloat16 are computed in float32.
 */
export function instanceNorm(
  x: Tensor,
  runningMean: Tensor | null = null,
  runningVar: Tensor | null = null,
  options: InstanceNormOptions = {},
): Tensor {
  requireFloat('instanceNorm', x);
  checkOptions('instanceNorm', options, instanceNormOptions);
  const { weight = null, bias = null, eps = 1e-5, useInputStats = true, momentum = 0.1 } = options;
  if (x.rank < 2) throw needsRank('instanceNorm', '2 or more', x.shape);
  const [batch, channels, ...rest] = x.shape as [number, number, ...number[]];
  const inner = countOf(rest);
  checkPerChannel('instanceNorm', x, { runningMean, runningVar, weight, bias }, channels);
  if (useInputStats && inner === 1) throw oneValuePerGroup('instanceNorm', x.shape);
  if (!useInputStats && (runningMean === null || runningVar === null)) throw noRunningStatistics();
  return scope(() => {
    const repeated = (each: Tensor | null): Tensor | null =>
      each && reshape(expand(each, [batch, channels]), [batch * channels]);
    const [ownMean, ownVar] = noGrad(() =>
      [runningMean, runningVar].map((each) => {
        const all = repeated(each);
        return all && clone(all);
      }),
    );
    const out = normalisedBy(reshape(x, [1, batch * channels, inner]), ownMean, ownVar, {
      weight: repeated(weight),
      bias: repeated(bias),
      training: useInputStats,
      momentum,
      eps,
    });
    if (useInputStats && batch > 0)
      noGrad(() => {
        for (const [running, own] of [
          [runningMean, ownMean],
          [runningVar, ownVar],
        ] as const)
          if (running && own) copy_(running, mean(reshape(own, [batch, channels]), 0));
      });
    return reshape(out, x.shape);
  });
}

/** Options of localResponseNorm(). */
export interface LocalResponseNormOptions {
  /** Default 1e-4. */
  readonly alpha?: number;
  /** Default 0.75. */
  readonly beta?: number;
  /** Default 1. */
  readonly k?: number;
}

export const localResponseNormOptions = optionChecks<LocalResponseNormOptions>({
  alpha: finite,
  beta: finite,
  k: finite,
});

/**
 * Divides x [batch, channels, …] by (k + alpha · m) ** beta, where m is the mean of the squares of `size` neighbouring
 * channels; channels outside count as 0.
 */
export function localResponseNorm(x: Tensor, size: number, options: LocalResponseNormOptions = {}): Tensor {
  requireTensor('localResponseNorm', x);
  requireFloat('localResponseNorm', x);
  checkOptions('localResponseNorm', options, localResponseNormOptions);
  checkValue('localResponseNorm: size', size, atLeastOne);
  if (x.rank < 3) throw needsRank('localResponseNorm', '3 or more', x.shape);
  const { alpha = 1e-4, beta = 0.75, k = 1 } = options;
  if (x.count === 0) return to(mul(x, 1), x.dtype);
  return scope(() => {
    const [batch, channels, ...rest] = x.shape as [number, number, ...number[]];
    const squares = reshape(square(x), [batch, 1, channels, countOf(rest)]);
    const padded = pad(squares, [0, 0, Math.floor(size / 2), Math.floor((size - 1) / 2)]);
    const means = reshape(avgPool2d(padded, [size, 1], { stride: 1 }), x.shape);
    return div(x, pow(add(mul(means, alpha), k), beta));
  });
}
