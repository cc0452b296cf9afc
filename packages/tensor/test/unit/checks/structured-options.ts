// Calls with options of operations on volumes, of bags of vectors and of losses of sequences, for options.test.ts.
import * as t from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';

const rows = (): t.Tensor => t.ones([2, 3]);
const volumes = (): t.Tensor => t.ones([1, 2, 4, 4, 4]);
const indices = (): t.Tensor => t.tensor([0n, 1n]);
const places = (shape: number[]): t.Tensor => t.zeros(shape, { dtype: 'int64' });
const logProbs = (): t.Tensor => t.ones([2, 1, 3]);

export const structuredCalls: Readonly<Record<string, (options: never) => unknown>> = {
  maxPool1dWithIndices: (o) => t.maxPool1dWithIndices(rows(), 2, o),
  maxPool3d: (o) => t.maxPool3d(volumes(), 2, o),
  maxPool3dWithIndices: (o) => t.maxPool3dWithIndices(volumes(), 2, o),
  avgPool3d: (o) => t.avgPool3d(volumes(), 2, o),
  lpPool3d: (o) => t.lpPool3d(volumes(), 2, 2, o),
  maxUnpool1d: (o) => t.maxUnpool1d(rows(), places([2, 3]), 2, o),
  maxUnpool3d: (o) => t.maxUnpool3d(volumes(), places([1, 2, 4, 4, 4]), 2, o),
  convTranspose3d: (o) => t.convTranspose3d(volumes(), t.ones([2, 1, 2, 2, 2]), null, o),
  featureAlphaDropout: (o) => t.featureAlphaDropout(rows(), 0.5, o),
  rrelu: (o) => t.rrelu(rows(), 0.1, 0.2, o),
  gumbelSoftmax: (o) => t.gumbelSoftmax(rows(), -1, o),
  embeddingBag: (o) => t.embeddingBag(indices(), rows(), places([1]), o),
  ctcLoss: (o) => t.ctcLoss(logProbs(), t.tensor([[1n]]), [2], [1], o),
  linearCrossEntropy: (o) => t.linearCrossEntropy(rows(), rows(), indices(), o),
  'new MaxPool3d': (o) => new nn.MaxPool3d(2, o),
  'new AvgPool3d': (o) => new nn.AvgPool3d(2, o),
  'new LPPool3d': (o) => new nn.LPPool3d(2, 2, o),
  'new MaxUnpool1d': (o) => new nn.MaxUnpool1d(2, o),
  'new MaxUnpool3d': (o) => new nn.MaxUnpool3d(2, o),
  'new ConvTranspose3d': (o) => new nn.ConvTranspose3d(2, 2, 2, o),
  'new Bilinear': (o) => new nn.Bilinear(2, 2, 2, o),
  'new EmbeddingBag': (o) => new nn.EmbeddingBag(2, 2, o),
  'EmbeddingBag.forward': (o) =>
    new nn.EmbeddingBag(2, 2, { mode: 'sum' }).forward(indices(), places([1]), o),
  'new CTCLoss': (o) => new nn.CTCLoss(o),
  'new LinearCrossEntropyLoss': (o) => new nn.LinearCrossEntropyLoss(2, 2, o),
  'new AdaptiveLogSoftmaxWithLoss': (o) => new nn.AdaptiveLogSoftmaxWithLoss(8, 4, [2], o),
};
