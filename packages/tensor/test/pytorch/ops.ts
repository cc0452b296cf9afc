// The cases of expected.py's OPS, by the same names and in the same order.

import type { Shape, Tensor } from '../../src/index.ts';
import * as t from '../../src/index.ts';
import { labels } from './wave.ts';

export type Case = readonly [shapes: readonly Shape[], fn: (x: Tensor, y: Tensor, z: Tensor) => Tensor];

const M = [3, 4];
const heads = Array.from({ length: 3 }, () => [2, 2, 3, 4]);
const positive = (x: Tensor): Tensor => x.abs().add(0.3);
const every3rd = (x: Tensor): Tensor =>
  t.tensor(
    Array.from({ length: x.count }, (_, i) => i % 3 === 0),
    { shape: x.shape },
  );
const weight = t.keep(t.tensor([0.5, 1, 2, 0.25]));
const ignoring = t.keep(t.tensor([2n, -100n, 0n]));

const unary = {
  ...{ neg: t.neg, abs: t.abs, exp: t.exp, square: t.square, sin: t.sin, cos: t.cos, tanh: t.tanh },
  ...{ sigmoid: t.sigmoid, relu: t.relu, erf: t.erf, floor: t.floor, ceil: t.ceil, round: t.round },
  ...{ trunc: t.trunc, sign: t.sign },
};
const ofPositive = { log: t.log, sqrt: t.sqrt, rsqrt: t.rsqrt };
const cases = (
  functions: Record<string, (x: Tensor) => Tensor>,
  shapes: readonly Shape[],
): Record<string, Case> =>
  Object.fromEntries(Object.entries(functions).map(([name, fn]) => [name, [shapes, fn]]));

export const ops: Readonly<Record<string, Case>> = {
  ...cases(unary, [M]),
  ...Object.fromEntries(
    Object.entries(ofPositive).map(([name, fn]): [string, Case] => [name, [[M], (x) => fn(positive(x))]]),
  ),
  gelu: [[M], (x) => t.gelu(x)],
  'gelu tanh': [[M], (x) => t.gelu(x.mul(3), { approximate: 'tanh' })],
  silu: [[M], (x) => t.silu(x)],
  clamp: [[M], (x) => t.clamp(x, -0.5, 0.8)],
  add: [[M, [4]], t.add],
  sub: [[M, [3, 1]], t.sub],
  mul: [[M, [4]], t.mul],
  div: [[M, [4]], (x, y) => x.div(positive(y))],
  pow: [[M, M], (x, y) => positive(x).pow(y)],
  maximum: [[M, M], t.maximum],
  minimum: [[M, [4]], t.minimum],
  where: [[M, M], (x, y) => t.where(every3rd(x), x, y)],
  maskedFill: [[M], (x) => t.maskedFill(x, every3rd(x), 2)],
  matmul: [
    [
      [3, 4],
      [4, 2],
    ],
    t.matmul,
  ],
  'matmul batched': [
    [
      [2, 3, 4],
      [4, 2],
    ],
    t.matmul,
  ],
  'matmul stretched': [
    [
      [2, 1, 3, 4],
      [3, 4, 2],
    ],
    t.matmul,
  ],
  'matmul vector': [[[3, 4], [4]], t.matmul],
  linear: [[[2, 3, 4], [5, 4], [5]], t.linear],
  sum: [[[2, 3, 4]], (x) => x.sum([0, 2])],
  mean: [[[2, 3, 4]], (x) => x.mean(1)],
  prod: [[M], (x) => x.prod(1)],
  max: [[M], (x) => x.max(1)],
  min: [[M], (x) => x.min(0)],
  variance: [[M], (x) => x.variance(1)],
  std: [[M], (x) => x.std(0, { keepDim: true })],
  logSumExp: [[M], (x) => x.logSumExp(1)],
  cumsum: [[M], (x) => x.cumsum(1)],
  softmax: [[[2, 3, 4]], (x) => x.softmax(1)],
  logSoftmax: [[M], (x) => x.logSoftmax()],
  permute: [[[2, 3, 4]], (x) => x.permute([2, 0, 1])],
  slice: [[[3, 5]], (x) => x.at([1, 3], [0, 5, 2])],
  expand: [[[3, 1]], (x) => x.expand([2, 3, 4])],
  cat: [
    [
      [2, 3],
      [2, 1],
    ],
    (x, y) => t.cat([x, y], 1),
  ],
  stack: [[M, M], (x, y) => t.stack([x, y], 1)],
  tril: [[[4, 4]], (x) => x.tril()],
  triu: [[[4, 4]], (x) => x.triu(1)],
  gather: [[M], (x) => x.gather(1, labels([3, 2], 4))],
  indexSelect: [[M], (x) => x.indexSelect(0, labels([5], 3))],
  scatterAdd: [[M, [3, 2]], (x, y) => x.scatterAdd(1, labels([3, 2], 4), y)],
  embedding: [[[5, 3]], (x) => t.embedding(labels([2, 3], 5), x)],
  sort: [[M], (x) => x.sort(1, { descending: true }).values],
  topk: [[M], (x) => x.topk(2).values],
  conv2d: [
    [[2, 4, 5, 5], [6, 2, 3, 3], [6]],
    (x, w, b) => t.conv2d(x, w, b, { stride: 2, padding: 1, groups: 2 }),
  ],
  conv1d: [[[2, 3, 9], [4, 3, 3], [4]], (x, w, b) => t.conv1d(x, w, b, { dilation: 2 })],
  maxPool2d: [[[1, 2, 6, 6]], (x) => t.maxPool2d(x, 3, { stride: 2, padding: 1 })],
  avgPool2d: [[[1, 2, 6, 6]], (x) => t.avgPool2d(x, 3, { stride: 2, padding: 1 })],
  adaptiveAvgPool2d: [[[1, 2, 5, 7]], (x) => t.adaptiveAvgPool2d(x, [2, 3])],
  batchNorm: [
    [[3, 2, 4], [2], [2]],
    (x, weight, bias) => t.batchNorm(x, null, null, { weight, bias, training: true }),
  ],
  layerNorm: [[[2, 3, 4], [4], [4]], (x, weight, bias) => t.layerNorm(x, [4], { weight, bias })],
  rmsNorm: [[[3, 4], [4]], (x, weight) => t.rmsNorm(x, [4], { weight, eps: 1e-6 })],
  attention: [heads, (q, k, v) => t.scaledDotProductAttention(q, k, v)],
  'attention causal': [heads, (q, k, v) => t.scaledDotProductAttention(q, k, v, { causal: true })],
  crossEntropy: [[M], (x) => t.crossEntropy(x, labels([3], 4))],
  'crossEntropy weighted': [[M], (x) => t.crossEntropy(x, ignoring, { weight, labelSmoothing: 0.1 })],
  'crossEntropy smoothed': [
    [M],
    (x) => t.crossEntropy(x, ignoring, { labelSmoothing: 0.2, reduction: 'none' }),
  ],
  'crossEntropy soft': [[M, M], (x, y) => t.crossEntropy(x, y.softmax(1), { weight })],
  'crossEntropy wide': [[[2, 4, 3]], (x) => t.crossEntropy(x, labels([2, 3], 4), { weight })],
  nllLoss: [[M], (x) => t.nllLoss(x.logSoftmax(1), ignoring, { weight })],
  mseLoss: [[M, M], (x, y) => t.mseLoss(x, y)],
  l1Loss: [[M, M], (x, y) => t.l1Loss(x, y)],
  huberLoss: [[M, M], (x, y) => t.huberLoss(x, y, { delta: 0.5 })],
  smoothL1Loss: [[M, M], (x, y) => t.smoothL1Loss(x, y, { beta: 0.4, reduction: 'sum' })],
  bce: [[M, M], (x, y) => t.bce(x.sigmoid(), y.detach().sigmoid())],
  bceWithLogits: [[M, M], (x, y) => t.bceWithLogits(x, y.sigmoid(), { posWeight: weight })],
  klDiv: [[M, M], (x, y) => t.klDiv(x.logSoftmax(1), y.softmax(1), { reduction: 'batchmean' })],
  cosineSimilarity: [[M, M], (x, y) => t.cosineSimilarity(x, y, 1)],
  cosineEmbeddingLoss: [
    [M, M],
    (x, y) => t.cosineEmbeddingLoss(x, y, t.tensor([1, -1, -1]), { margin: 0.1 }),
  ],
  'crossEntropy ignoring': [[M], (x) => t.crossEntropy(x, ignoring)],
  flip: [[[2, 3, 4]], (x) => x.flip([0, 2])],
  roll: [[[2, 3, 4]], (x) => x.roll(-3, 2)],
  'roll flat': [[[2, 3, 4]], (x) => x.roll(5)],
  repeat: [[M], (x) => x.repeat([2, 1, 3])],
  unflatten: [[[3, 8]], (x) => x.unflatten(1, [2, -1])],
  norm: [[M], (x) => x.norm(1)],
  'norm 3': [[M], (x) => x.norm(0, { p: 3, keepDim: true })],
  'norm inf': [[M], (x) => x.norm(1, { p: Infinity })],
  varMean: [[M], (x) => t.add(...t.varMean(x, 1))],
  einsum: [[[2, 3, 4], [2, 4, 5], [5]], (x, y, z) => t.einsum('bij,bjk,k->ib', x, y, z)],
  'einsum implicit': [
    [
      [4, 3],
      [4, 2],
    ],
    (x, y) => t.einsum('ba,bc', x, y),
  ],
  leakyRelu: [[M], (x) => t.leakyRelu(x, 0.2)],
  elu: [[M], (x) => t.elu(x, 0.7)],
  softplus: [[M], t.softplus],
};
