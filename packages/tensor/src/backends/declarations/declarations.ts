// Every kernel, declared once. The order of operands and attributes is that of the native call. A kernel is implemented
// three times under its name: in backends/reference, in native/tensor/cpu (C++, `logSoftmax` is `log_softmax`) and in
// native/tensor/cuda. The comments here are the specification of all three.
//
// `out` may be an input of `map` and `copy` if both have the same offset and strides. Otherwise no output overlaps an
// input, except where a comment below says so.

import {
  choice,
  group,
  headsInput,
  headsOutput,
  input,
  inputOrNumber,
  kernel,
  list,
  mask,
  optionalInput,
  optionalOutput,
  output,
  part,
  walk,
} from './declare.ts';
import { activations, mapOps, optimizerKinds, randomKinds, reduceOps, scatterOps } from './names.ts';

const mapOp = choice(mapOps);
const reduceOp = choice(reduceOps);
const scatterOp = choice(scatterOps);
const activation = choice(activations);
const randomKind = choice(randomKinds);

/**
 * A window that slides over planes [height, width]. Position (y, x) of the output begins at row y · strideY − padTop
 * and column x · strideX − padLeft; the window's rows are dilationY apart, its columns dilationX.
 */
const window = group({
  height: 'size',
  width: 'size',
  outHeight: 'size',
  outWidth: 'size',
  kernelHeight: 'size',
  kernelWidth: 'size',
  strideY: 'size',
  strideX: 'size',
  dilationY: 'size',
  dilationX: 'size',
  padTop: 'size',
  padLeft: 'size',
});

/**
 * Matrices are row-major; aStep and bStep count elements from one stored row to the next. A is stored [k, m] when
 * transA, B [n, k] when transB. `accumulate` adds to the present content of the output.
 */
const matmulSizes = part(
  {},
  {
    attributes: {
      m: 'size',
      n: 'size',
      k: 'size',
      aStep: 'size',
      bStep: 'size',
      transA: 'flag',
      transB: 'flag',
      accumulate: 'flag',
    },
  },
);

/** inChannels and outChannels are those of one group. */
const convSizes = part(
  {},
  { attributes: { batch: 'size', groups: 'size', inChannels: 'size', outChannels: 'size', window } },
);
const convX = 'batch groups inChannels window.height window.width';
const convWeight = 'groups outChannels inChannels window.kernelHeight window.kernelWidth';
const convOut = 'batch groups outChannels window.outHeight window.outWidth';

/**
 * A dense tensor as [outer, size, inner]. Indices are positions along `size`: `count` of them, the same for every outer
 * and inner, or with `perElement` one for each element of [outer, count, inner].
 */
const lookupSizes = part(
  {},
  { attributes: { outer: 'size', count: 'size', size: 'size', inner: 'size', perElement: 'flag' } },
);
const short = 'outer count inner';
const long = 'outer size inner';
/** Indices, each inside [0, size). */
const positions = input('perElement ? outer count inner : count', 'int64');

const poolSizes = part(
  {},
  { attributes: { planes: 'size', height: 'size', width: 'size', outHeight: 'size', outWidth: 'size' } },
);
/** Begin, end (excluded) and divisor of each output row, then of each output column. */
const bins = input('3 outHeight+outWidth', 'int64');

/**
 * Scores with labels. Rows with the label `ignoreIndex` have loss, count and gradient 0; `smoothing` is the share of
 * each label that is spread evenly over all classes; `weight` has a number for each class, null stands for 1. `kept` is
 * written by the forward and read by the gradient: the largest score of a row, and log Σ exp(score − largest). Only
 * scores and their gradients are float16 or bfloat16.
 */
const labelledScores = part(
  {
    scores: input('rows cols'),
    labels: input('rows', 'label'),
    weight: optionalInput('cols', 'row'),
    kept: output('rows 2', 'row'),
  },
  { attributes: { ignoreIndex: 'integer', smoothing: 'number' } },
);

/**
 * out = softmax(scale · q kᵀ + mask) v for each head. lse: log Σ exp(scores); ∞ where a query sees no key, and out is 0
 * there. causal: query i sees keys 0 … i. dropout: the share, below 1, of the softmax's weights that are dropped; word
 * ((b·heads + h)·queries + i)·keys + j of the stream decides for query i and key j. A mask of bool
 * hides keys where it is false; another one is added to the scores.
 */
const attention = kernel(
  'stored',
  {
    out: headsOutput('batch heads queries valueWidth'),
    lse: output('batch heads queries', 'row'),
    q: headsInput('batch heads queries width'),
    k: headsInput('batch heads keys width'),
    v: headsInput('batch heads keys valueWidth'),
    mask: mask('batch heads queries keys'),
  },
  {
    attributes: { scale: 'number', causal: 'flag', dropout: 'number', stream: 'stream' },
    isChecked: true,
  },
);

/** The names of the C++ types that several kernels share. */
export const choices = {
  MapOp: mapOp,
  ReduceOp: reduceOp,
  ScatterOp: scatterOp,
  Activation: activation,
  RandomKind: randomKind,
  OptimizerKind: choice(optimizerKinds),
} as const;
export const groups = { Window: window } as const;
export const parts = {
  MatmulSizes: matmulSizes,
  ConvSizes: convSizes,
  LookupSizes: lookupSizes,
  PoolSizes: poolSizes,
  LabelledScores: labelledScores,
} as const;

/** Kernels over operands of any dtypes and any strides. Their contract is WalkKernels in ../kernels.ts. */
export const walkKernels = {
  map: walk([2, 4], { attributes: { op: mapOp, compute: 'dtype' } }),
  copy: walk([2, 2]),
  reduce: walk([2, 2], { attributes: { op: reduceOp } }),
  argReduce: walk([2, 2], { attributes: { isMax: 'flag' }, isChecked: true }),
  matmul: walk([3, 3], { base: matmulSizes, isChecked: true }),
} as const;

/** Kernels over dense operands. */
export const denseKernels = {
  /** Writes the log-softmax of each row. */
  logSoftmax: kernel('stored', { out: output('rows cols'), a: input('rows cols') }),
  /** gradIn = gradOut − softmax · Σ gradOut for each row, with softmax = exp(out) and `out` the forward's result. */
  logSoftmaxGrad: kernel('stored', {
    gradIn: output('rows cols'),
    gradOut: input('rows cols'),
    out: input('rows cols'),
  }),
  /** losses[r] = −logProbs[r, labels[r]]. The op has checked the labels. */
  nll: kernel('stored', {
    logProbs: input('rows cols'),
    losses: output('rows', 'row'),
    labels: input('rows', 'label'),
  }),
  /** gradIn[r, c] = −gradLosses[r] where c is the label, else 0. */
  nllGrad: kernel('stored', {
    gradIn: output('rows cols'),
    gradLosses: input('rows', 'row'),
    labels: input('rows', 'label'),
  }),
  /** losses[r] = −Σ over classes of target · weight · log softmax(scores), the target being the smoothed label, and
   *  counts[r], unless it is null, the weight of the label. */
  crossEntropy: kernel(
    'stored',
    { losses: output('rows', 'row'), counts: optionalOutput('rows', 'row') },
    { base: labelledScores },
  ),
  /**
   * Writes the gradient of the scores. That of the losses is grad ÷ divisor, with one `grad` for each row or one for
   * all.
   */
  crossEntropyGrad: kernel(
    'stored',
    {
      gradScores: output('rows cols'),
      grad: input('isPerRow ? rows : 1', 'row'),
      divisor: inputOrNumber('1', 'row'),
    },
    { base: labelledScores, attributes: { isPerRow: 'flag' } },
  ),

  /** out[o, j, i] = a[o, index, i], where index is index[j] or index[o, j, i]. */
  lookup: kernel(
    'any',
    { out: output(short), a: input(long), index: positions },
    { base: lookupSizes, isChecked: true },
  ),
  /** out[o, index, i] = op(out[o, index, i], a[o, j, i]) for j = 0, 1, …, with the same index as lookup. */
  scatter: kernel(
    'any',
    { out: output(long), a: input(short), index: positions },
    { base: lookupSizes, attributes: { op: scatterOp }, isChecked: true },
  ),
  /** Running sums along the middle dimension; from the end when `reverse`. */
  cumsum: kernel('any', { out: output(long), a: input(long) }, { attributes: { reverse: 'flag' } }),
  /** The first `count` ≤ cols of each sorted row, and where they stood. Stable; NaN counts as the largest. */
  sort: kernel(
    'any',
    { values: output('rows count'), indices: output('rows count', 'int64'), a: input('rows cols') },
    { attributes: { descending: 'flag' }, isChecked: true },
  ),
  /** Copies, with zeros above the diagonal (0 the main one, 1 the one above it), or below it when `upper`. */
  triangle: kernel(
    'any',
    { out: output('batch rows cols'), a: input('batch rows cols') },
    { attributes: { diagonal: 'integer', upper: 'flag' } },
  ),

  /** out = activation(x · wᵀ + bias); `before`, unless it is null, receives the argument of the activation. */
  linear: kernel(
    'stored',
    {
      out: output('rows outs'),
      x: input('rows ins'),
      w: input('outs ins'),
      bias: optionalInput('outs'),
      before: optionalOutput('rows outs'),
    },
    { attributes: { activation } },
  ),
  /**
   * gradBefore = grad · activation′, and gradBias its sums over the rows. `saved` is the result of relu, or the
   * argument of gelu and geluTanh. gradBefore may be grad. The activation is not 'none'.
   */
  linearGrad: kernel(
    'stored',
    {
      gradBefore: output('rows outs'),
      grad: input('rows outs'),
      saved: input('rows outs'),
      gradBias: optionalOutput('outs'),
    },
    { attributes: { activation }, isChecked: true },
  ),
  /** Convolves. Elements of a window outside of its plane count as 0. */
  conv2d: kernel(
    'stored',
    { out: output(convOut), x: input(convX), weight: input(convWeight) },
    { base: convSizes, isChecked: true },
  ),
  /** Writes gradX, or adds to it when `accumulate`. */
  conv2dGradInput: kernel(
    'stored',
    { gradX: output(convX), grad: input(convOut), weight: input(convWeight) },
    { base: convSizes, attributes: { accumulate: 'flag' }, isChecked: true },
  ),
  /** Writes gradWeight, or adds to it when `accumulate`. */
  conv2dGradWeight: kernel(
    'stored',
    { gradWeight: output(convWeight), grad: input(convOut), x: input(convX) },
    { base: convSizes, attributes: { accumulate: 'flag' }, isChecked: true },
  ),
  /**
   * Writes the largest element under each window, and its position in the plane: the first of equal ones. NaN counts as
   * the largest, and the last NaN is selected. Padding is never selected; an empty window gives −∞ and position 0.
   */
  maxPool: kernel(
    'stored',
    {
      out: output('planes window.outHeight window.outWidth'),
      positions: output('planes window.outHeight window.outWidth', 'int64'),
      a: input('planes window.height window.width'),
    },
    { attributes: { window }, isChecked: true },
  ),
  /** Writes sums over boxes, each divided by the product of the box's two divisors. */
  avgPool: kernel(
    'stored',
    { out: output('planes outHeight outWidth'), a: input('planes height width'), bins },
    { base: poolSizes, isChecked: true },
  ),
  /** Writes the gradient of `a`, given that of `out`. */
  avgPoolGrad: kernel(
    'stored',
    { gradIn: output('planes height width'), grad: input('planes outHeight outWidth'), bins },
    { base: poolSizes, isChecked: true },
  ),
  /** Writes the mean of each channel (0 of nothing), then the sum of squared distances from it. */
  channelMoments: kernel('float', { out: output('2 channels'), a: input('outer channels inner') }),
  /** Writes Σ grad of each channel, then Σ grad · (a − mean), with one mean per channel. */
  channelGradSums: kernel('float', {
    out: output('2 channels'),
    grad: input('outer channels inner'),
    a: input('outer channels inner'),
    mean: input('channels'),
  }),

  /**
   * Normalises rows: out = (a − mean) · rstd · gamma + beta, with 1 and 0 for a gamma and beta that are null. With an
   * addend, a + addend is normalised and written to `sum`. Without a mean, rows are divided by their root mean square.
   * rstd = 1 / √(variance + eps), or 1 / √(mean square + eps). On float16 and bfloat16, mean and rstd are float32.
   */
  norm: kernel(
    'stored',
    {
      out: output('rows cols'),
      rstd: output('rows', 'row'),
      a: input('rows cols'),
      mean: optionalOutput('rows', 'row'),
      addend: optionalInput('rows cols'),
      sum: optionalOutput('rows cols'),
      gamma: optionalInput('cols'),
      beta: optionalInput('cols'),
    },
    { attributes: { eps: 'number' }, isChecked: true },
  ),
  /** Writes those of gradIn, gradGamma and gradBeta that are not null; adds to gradIn when `accumulate`. */
  normGrad: kernel(
    'stored',
    {
      gradOut: input('rows cols'),
      rstd: input('rows', 'row'),
      a: input('rows cols'),
      mean: optionalInput('rows', 'row'),
      gamma: optionalInput('cols'),
      gradIn: optionalOutput('rows cols'),
      gradGamma: optionalOutput('cols'),
      gradBeta: optionalOutput('cols'),
    },
    { attributes: { accumulate: 'flag' } },
  ),
  /**
   * Normalises each group of channels of each sample: out = (a − mean) · rstd · gamma + beta, with 1 and 0 for a gamma
   * and beta that are null, and rstd = 1 / √(variance + eps).
   */
  groupNorm: kernel(
    'float',
    {
      out: output('batch groups channels inner'),
      mean: output('batch groups'),
      rstd: output('batch groups'),
      a: input('batch groups channels inner'),
      gamma: optionalInput('groups channels'),
      beta: optionalInput('groups channels'),
    },
    { attributes: { eps: 'number' } },
  ),
  /**
   * Writes Σ gradOut of each channel of each sample to `sums`, then Σ gradOut · (a − mean) · rstd of all of them.
   * Writes gradIn unless it is null; adds to it when `accumulate`.
   */
  groupNormGrad: kernel(
    'float',
    {
      gradOut: input('batch groups channels inner'),
      a: input('batch groups channels inner'),
      mean: input('batch groups'),
      rstd: input('batch groups'),
      gamma: optionalInput('groups channels'),
      gradIn: optionalOutput('batch groups channels inner'),
      sums: output('2 batch groups channels'),
    },
    { attributes: { accumulate: 'flag' } },
  ),

  /**
   * Computes one step of an LSTM for `rows` sequences. `gates` has the sums of the products for the gates i, f, g and
   * o, and receives σ(i), σ(f), tanh(g) and σ(o). `hidden` and `cell` have the states, which are copied to hiddenBefore
   * and cellBefore, and receive the next ones: cell = f · cell + i · g, and hidden = o · tanh(cell), which `out`
   * receives too. cellTanh receives tanh(cell).
   */
  lstm: kernel('stored', {
    gates: output('rows 4 width'),
    hidden: output('rows width'),
    cell: output('rows width'),
    out: output('rows width'),
    hiddenBefore: output('rows width'),
    cellBefore: output('rows width'),
    cellTanh: output('rows width'),
  }),
  /**
   * Writes the gradient of the sums that `gates` had before the step. The gradient of `hidden` is gradHidden + gradOut.
   * gradCell has the gradient of `cell` after the step, and receives the one before it.
   */
  lstmGrad: kernel('stored', {
    gradGates: output('rows 4 width'),
    gradCell: output('rows width'),
    gates: input('rows 4 width'),
    cellBefore: input('rows width'),
    cellTanh: input('rows width'),
    gradHidden: input('rows width'),
    gradOut: input('rows width'),
  }),
  attention,
  /** Writes gradQ, gradK and gradV; reads the operands and results of the forward. */
  attentionGrad: kernel(
    'stored',
    {
      gradOut: headsInput('batch heads queries valueWidth'),
      gradQ: headsOutput('batch heads queries width'),
      gradK: headsOutput('batch heads keys width'),
      gradV: headsOutput('batch heads keys valueWidth'),
    },
    { base: attention, isChecked: true },
  ),

  /**
   * Fills memory from a stream; float32 or int64, depending on the kind (names.ts). uniform and integers read `low` and
   * `high`.
   */
  random: kernel(
    'any',
    { out: output('count') },
    { attributes: { kind: randomKind, stream: 'stream', low: 'number', high: 'number' }, isChecked: true },
  ),
  /** out[i] = 0 where word i of the stream is below ⌊p · 2^32⌋, else a[i] / (1 − p); p < 1. */
  dropout: kernel(
    'stored',
    { out: output('count'), a: input('count') },
    { attributes: { p: 'number', stream: 'stream' }, isChecked: true },
  ),
} as const;

/** Kernels over many dense tensors of float32 or float64. Their contract is ListKernels in ../kernels.ts. */
export const listKernels = { optimize: list(), totalNorm: list(), scale: list() } as const;
