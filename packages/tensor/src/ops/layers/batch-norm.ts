// Batch normalisation over all dimensions but the second: out = x · scale + shift, with a scale and a shift for each
// channel. They follow from few numbers: means and sums of squared distances forward, two sums of gradients backward.
// Processes that share a batch exchange only these numbers (BatchNormSync).
import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, finite, flag, nonNegative, tensorOrNull } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import type { DType } from '../../core/dtype.ts';
import { withStrides } from '../../core/layout.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import { copyInto } from '../../core/memory/transfer.ts';
import { countOf, type Shape } from '../../core/shape.ts';
import { empty, Tensor } from '../../core/tensor.ts';
import {
  badChannels,
  badOption,
  needsRank,
  noRunningStatistics,
  notTwiceDifferentiable,
  oneValuePerChannel,
} from '../../errors.ts';
import { add, div, mul, sub } from '../elementwise/binary.ts';
import { contiguous, inFloat32, needsFloat32, requireFloat, requireOperand } from '../elementwise/convert.ts';
import { square } from '../elementwise/unary.ts';
import { jointDevice } from '../joint-device.ts';
import { sum } from '../reduce/reduce.ts';
import { narrow } from '../shape/views.ts';

/** Joins the batches of many processes. All processes call both functions in the same order. */
export interface BatchNormSync {
  /** Number of processes. */
  readonly size: number;
  /**
   * Forward: `own` is [2 · channels + 1], on the device of x: the means of this process, its sums of squared distances
   * from them, and `count`, its number of elements per channel. An empty batch has zeros. `all` is
   * [size, 2 · channels + 1] and is overwritten with those of each process. Returns the sum of all counts, which the
   * host needs.
   */
  readonly gather: (own: Tensor, all: Tensor, count: number) => number;
  /**
   * Backward: `own` is [2 · channels], Σ g and Σ g · (x − mean), on the device of x. Overwritten with the sums over all
   * processes.
   */
  readonly gradSums: (own: Tensor) => void;
}

/** Options of batchNorm(). */
export interface BatchNormOptions {
  /** [channels]; default 1. */
  readonly weight?: Tensor | null;
  /** [channels]; default 0. */
  readonly bias?: Tensor | null;
  /** True: normalises by the batch and updates the running statistics. Default false: normalises by them. */
  readonly training?: boolean;
  /** Weight of the batch's statistics in the update of the running statistics. Default 0.1. */
  readonly momentum?: number;
  /** Added to the variance; above 0 in training, but for `sync`. Default 1e-5. */
  readonly eps?: number;
  /** Joins the batches of several processes in training. Default null: only the batch of this process is used. */
  readonly sync?: BatchNormSync | null;
}

const batchNormOptions = optionChecks<BatchNormOptions>({
  weight: tensorOrNull,
  bias: tensorOrNull,
  training: flag,
  momentum: finite,
  eps: nonNegative,
  sync: anything,
});

/** The shape of x for the kernels: [outer, channels, inner]. */
interface Extent {
  readonly outer: number;
  readonly channels: number;
  readonly inner: number;
}

const part = ({ memory }: Strided, offset: number): Strided => ({ memory, offset, strides: null });
/** Returns the location of one number per channel, broadcast to [outer, channels, inner]. */
const perChannel = (values: Strided): Strided => withStrides(values, [0, 1, 0]);

/** Calls `use` with the memory of `storage` as a tensor, which `use` may read and overwrite. */
function exchanged(storage: Storage, use: (tensor: Tensor) => void): void {
  const tensor = new Tensor(storage.retain(), [storage.memory.count]);
  use(tensor);
  tensor.dispose();
}

function checkedExtent(x: Tensor, all: Readonly<Record<string, Tensor | null>>): Extent {
  requireFloat('batchNorm', x);
  if (x.rank < 2) throw needsRank('batchNorm', 2, x.shape);
  const [outer, channels, ...rest] = x.shape as [number, number, ...number[]];
  for (const [name, tensor] of Object.entries(all)) {
    const fits = tensor === null || (tensor.rank === 1 && tensor.shape[0] === channels);
    if (!fits) throw badChannels('batchNorm', name, tensor.shape, channels);
  }
  return { outer, channels, inner: countOf(rest) };
}

/** The statistics by which a forward pass normalises. */
interface Statistics {
  /** Means [channels]; in training, sums of squared distances [channels] follow, and with `sync` their count. */
  readonly sums: Storage;
  /** 1 / √(variance + eps). */
  readonly inverse: Storage;
  readonly eps: number;
  /**
   * Elements per channel in all processes. 0 for running statistics and for an empty batch: no gradient reaches x
   * through them.
   */
  readonly count: number;
}

function batchStatistics(x: Tensor, e: Extent, eps: number, sync: BatchNormSync | null): Statistics {
  const { dtype, device } = x;
  const { channels } = e;
  const own = e.outer * e.inner;
  const sums = allocate(dtype, 2 * channels + 1, device);
  if (own === 0 && sync === null) return ofNothing(sums, channels);
  let count = own;
  if (own === 0) kernels().copy([2 * channels + 1], sums.dense, 0);
  else
    kernels().channelMoments({ out: sums.dense, a: x.strided }, { outer: e.outer, channels, inner: e.inner });
  if (sync) {
    kernels().copy([1], part(sums.dense, 2 * channels), own);
    exchanged(sums, (tensor) => {
      count = joinMoments(tensor, own, sync);
    });
  }
  if (count <= 1) {
    sums.release();
    throw oneValuePerChannel(x.shape);
  }
  const inverse = allocate(dtype, channels, device);
  const squares = part(sums.dense, channels);
  kernels().map('mulAdd', dtype, [channels], inverse.dense, squares, 1 / count, eps);
  kernels().map('rsqrt', dtype, [channels], inverse.dense, inverse.dense);
  return { sums, inverse, count, eps };
}

/**
 * Replaces the moments of this process by those of all processes: the parallel algorithm of Chan, Golub and LeVeque,
 * 1979. `own` is as in BatchNormSync.gather(), and keeps its own count at the end. Returns the count of all processes.
 */
function joinMoments(own: Tensor, ownCount: number, sync: BatchNormSync): number {
  const channels = (own.count - 1) / 2;
  const all = empty(own.dtype, [sync.size, own.count], own.device);
  const count = sync.gather(own, all, ownCount);
  noGrad(() =>
    scope(() => {
      const counts = narrow(all, 1, 2 * channels, 1);
      const means = narrow(all, 1, 0, channels);
      const mean = sum(mul(means, div(counts, count)), 0);
      const distance = square(sub(means, mean));
      const squares = sum(add(narrow(all, 1, channels, channels), mul(distance, counts)), 0);
      copyInto(own.strided, mean.shape, mean.strided);
      copyInto(part(own.strided, channels), mean.shape, squares.strided);
    }),
  );
  all.dispose();
  return count;
}

/** Returns the statistics of a batch without elements: zeros. Takes ownership of the reference of `sums`. */
function ofNothing(sums: Storage, channels: number): Statistics {
  const { dtype, device, count } = sums.memory;
  const inverse = allocate(dtype, channels, device);
  kernels().copy([count], sums.dense, 0);
  kernels().copy([channels], inverse.dense, 0);
  return { sums, inverse, count: 0, eps: 0 };
}

function runningStatistics(dtype: DType, mean: Tensor, variance: Tensor, eps: number): Statistics {
  const channels = mean.count;
  const sums = allocate(dtype, channels, mean.device);
  const inverse = allocate(dtype, channels, mean.device);
  kernels().copy([channels], sums.dense, mean.strided);
  kernels().map('add', dtype, [channels], inverse.dense, variance.strided, eps);
  kernels().map('rsqrt', dtype, [channels], inverse.dense, inverse.dense);
  return { sums, inverse, count: 0, eps };
}

/** Updates running = running · (1 − momentum) + value · factor. */
function move(running: Tensor, value: Strided, momentum: number, factor: number): void {
  const { dtype } = value.memory;
  const own = running.strided;
  kernels().map('mul', dtype, running.shape, own, own, 1 - momentum);
  kernels().map('mulAdd', dtype, running.shape, own, value, factor, own);
  running.storage.version++;
}

/**
 * Normalises x [batch, channels, …] for each channel. `runningMean` and `runningVar` [channels] are read; in training
 * they are moved towards the statistics of the batch, with the variance of a sample (n − 1). float16 and bfloat16 are
 * computed in float32; the numbers per channel may have any floating dtype.
 */
export function batchNorm(
  x: Tensor,
  runningMean: Tensor | null = null,
  runningVar: Tensor | null = null,
  options: BatchNormOptions = {},
): Tensor {
  checkOptions('batchNorm', options, batchNormOptions);
  const { training = false, eps = 1e-5, sync = null } = options;
  if (training && eps === 0 && sync === null)
    throw badOption('batchNorm: eps in training', 'a number > 0', '0');
  return normalisedBy(x, runningMean, runningVar, options);
}

/** Does the same as batchNorm(), but accepts eps 0 in training, too, as instanceNorm() does in PyTorch. @internal */
export function normalisedBy(
  x: Tensor,
  runningMean: Tensor | null = null,
  runningVar: Tensor | null = null,
  options: BatchNormOptions = {},
): Tensor {
  const { weight = null, bias = null, training = false, momentum = 0.1, eps = 1e-5, sync = null } = options;
  if (runningMean !== null) requireOperand('batchNorm', 'runningMean', runningMean);
  if (runningVar !== null) requireOperand('batchNorm', 'runningVar', runningVar);
  const extent = checkedExtent(x, { weight, bias, runningMean, runningVar });
  jointDevice('batchNorm', x, weight, bias);
  jointDevice('batchNorm', x, runningMean, runningVar);
  if (needsFloat32(x)) return inFloat32(x, (wide) => normalisedBy(wide, runningMean, runningVar, options));
  const dense = contiguous(x);
  const out = training
    ? inTraining(dense, extent, batchStatistics(dense, extent, eps, sync), runningMean, runningVar, {
        weight,
        bias,
        momentum,
        sync,
      })
    : evaluated(dense, extent, runningMean, runningVar, weight, bias, eps);
  if (dense !== x) dense.dispose();
  return out;
}

function inTraining(
  x: Tensor,
  extent: Extent,
  statistics: Statistics,
  runningMean: Tensor | null,
  runningVar: Tensor | null,
  options: Required<Pick<BatchNormOptions, 'weight' | 'bias' | 'momentum' | 'sync'>>,
): Tensor {
  const { weight, bias, momentum, sync } = options;
  const { sums, count } = statistics;
  // As in PyTorch, a batch without elements does not change the running statistics.
  if (count === 0) return normalised(x, extent, statistics, weight, bias, sync);
  if (runningMean) move(runningMean, sums.dense, momentum, momentum);
  if (runningVar) move(runningVar, part(sums.dense, extent.channels), momentum, momentum / (count - 1));
  return normalised(x, extent, statistics, weight, bias, sync);
}

function evaluated(
  x: Tensor,
  extent: Extent,
  runningMean: Tensor | null,
  runningVar: Tensor | null,
  weight: Tensor | null,
  bias: Tensor | null,
  eps: number,
): Tensor {
  if (runningMean === null || runningVar === null) throw noRunningStatistics();
  const statistics = runningStatistics(x.dtype, runningMean, runningVar, eps);
  return normalised(x, extent, statistics, weight, bias, null);
}

/** Normalises by `statistics`, and takes ownership of their references. */
function normalised(
  x: Tensor,
  { outer, channels, inner }: Extent,
  { sums, inverse, count, eps }: Statistics,
  weight: Tensor | null,
  bias: Tensor | null,
  sync: BatchNormSync | null,
): Tensor {
  const { dtype, device } = x;
  const shape: Shape = [outer, channels, inner];
  const row: Shape = [channels];
  const mean = part(sums.dense, 0);
  const scale = allocate(dtype, channels, device);
  const shift = allocate(dtype, channels, device);
  kernels().map('mul', dtype, row, scale.dense, inverse.dense, weight?.strided ?? 1);
  kernels().map('mul', dtype, row, shift.dense, mean, scale.dense);
  kernels().map('sub', dtype, row, shift.dense, bias?.strided ?? 0, shift.dense);
  const out = empty(dtype, x.shape, device);
  const dense = withStrides(out.strided, null);
  kernels().map('mulAdd', dtype, shape, dense, x.strided, perChannel(scale.dense), perChannel(shift.dense));
  shift.release();
  const pass: Pass = {
    extent: { outer, channels, inner },
    statistics: { sums, inverse, count, eps },
    scale,
    sync,
  };
  if (isRecording(x, weight, bias)) recorded(out, x, weight, bias, pass);
  for (const storage of [sums, inverse, scale]) storage.release();
  return out;
}

/** The values of a forward pass that backward needs. */
interface Pass {
  readonly extent: Extent;
  readonly statistics: Statistics;
  readonly scale: Storage;
  readonly sync: BatchNormSync | null;
}

function recorded(
  out: Tensor,
  x: Tensor,
  weight: Tensor | null,
  bias: Tensor | null,
  { extent: { outer, channels, inner }, statistics, scale, sync }: Pass,
): void {
  const { dtype } = x;
  const { sums, inverse, count, eps } = statistics;
  const [toX, toWeight, toBias] = [x.target, weight?.target ?? null, bias?.target ?? null];
  const row: Shape = [channels];
  const shape: Shape = [outer, channels, inner];
  const mean = part(sums.dense, 0);
  const input = x.strided;
  const wholeShape = x.shape;
  const weights = weight?.strided ?? null;
  const saved = [x.storage, sums, inverse, scale, ...(weight ? [weight.storage] : [])];
  record('batchNorm', out, [toX, toWeight, toBias], saved, (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      if (sync && count > 0) throw notTwiceDifferentiable('batchNorm over several ranks');
      own.send(toBias, own.grad.reshape(shape).sum([0, 2]));
      const inputs = [{ strided: input, shape: wholeShape, target: toX }];
      if (weights) inputs.push({ strided: weights, shape: row, target: toWeight });
      const constant = (value: Strided): Tensor => own.saved(value, row, null).reshape([channels, 1]);
      own.through(inputs, (a, factors) => {
        const planes = a!.reshape(shape);
        const centre = count > 0 ? planes.mean([0, 2], true) : constant(mean);
        const centred = planes.sub(centre);
        const deviation =
          count > 0 ? centred.square().mean([0, 2], true).add(eps).rsqrt() : constant(inverse.dense);
        const normed = centred.mul(deviation);
        return (factors ? normed.mul(factors.reshape([channels, 1])) : normed).reshape(wholeShape);
      });
      return;
    }
    const gradSums = allocate(dtype, 2 * channels, grad.memory.device);
    kernels().channelGradSums(
      { out: gradSums.dense, grad: grad.dense, a: input, mean },
      { outer, channels, inner },
    );
    if (toBias) {
      const into = toBias.begin();
      kernels().copy(row, into.dense, part(gradSums.dense, 0));
      toBias.end(into);
    }
    if (toWeight) {
      const into = toWeight.begin();
      kernels().map('mul', dtype, row, into.dense, part(gradSums.dense, channels), inverse.dense);
      toWeight.end(into);
    }
    if (toX) {
      const into = toX.begin();
      const factor = perChannel(scale.dense);
      if (count > 0) {
        if (sync) exchanged(gradSums, sync.gradSums);
        const [slope, offset] = meanGradient(gradSums, mean, inverse, scale, count);
        kernels().map('mulAdd', dtype, shape, into.dense, input, perChannel(slope), perChannel(offset));
        kernels().map('mulAdd', dtype, shape, into.dense, grad.dense, factor, into.dense);
      } else {
        kernels().map('mul', dtype, shape, into.dense, grad.dense, factor);
      }
      toX.end(into);
    }
    gradSums.release();
  });
}

/**
 * Computes the gradient that reaches x through the mean and the variance, as slope · x + offset. With s the
 * scale and r the inverse deviation: slope = −s · r² · Σ g (x − mean) / n and offset = −s · Σ g / n − slope ·
 * mean. Both overwrite `gradSums`.
 */
function meanGradient(
  gradSums: Storage,
  mean: Strided,
  inverse: Storage,
  scale: Storage,
  count: number,
): readonly [slope: Strided, offset: Strided] {
  const { dtype, device } = mean.memory;
  const row: Shape = [scale.memory.count];
  const [offset, slope] = [part(gradSums.dense, 0), part(gradSums.dense, row[0]!)];
  const shifted = allocate(dtype, row[0]!, device);
  kernels().map('mul', dtype, row, slope, slope, inverse.dense);
  kernels().map('mul', dtype, row, slope, slope, inverse.dense);
  for (const sum of [slope, offset]) {
    kernels().map('mul', dtype, row, sum, sum, scale.dense);
    kernels().map('mul', dtype, row, sum, sum, -1 / count);
  }
  kernels().map('mul', dtype, row, shifted.dense, slope, mean);
  kernels().map('sub', dtype, row, offset, offset, shifted.dense);
  shifted.release();
  return [slope, offset];
}
