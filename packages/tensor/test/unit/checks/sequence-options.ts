// Calls with options of layers for sequences and of losses, for options.test.ts.
import * as t from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';

const steps = (): t.Tensor => t.ones([2, 1, 3]);

const encoderLayer = (): nn.TransformerEncoderLayer => new nn.TransformerEncoderLayer(3, 1);
const decoderLayer = (): nn.TransformerDecoderLayer => new nn.TransformerDecoderLayer(3, 1);
const tiny = (): nn.Transformer =>
  new nn.Transformer(3, 1, { numEncoderLayers: 1, numDecoderLayers: 1, dimFeedforward: 2 });

const row = (): t.Tensor => t.ones([3]);
const label = (): t.Tensor => t.tensor([1n]);
const labels = (): t.Tensor => t.tensor([1n, -1n, 0n]);

export const sequenceCalls: Readonly<Record<string, (options: never) => unknown>> = {
  'new RNN': (o) => new nn.RNN(2, 2, o),
  'new LSTM': (o) => new nn.LSTM(2, 2, o),
  'new GRU': (o) => new nn.GRU(2, 2, o),
  'new RNNCell': (o) => new nn.RNNCell(2, 2, o),
  'new LSTMCell': (o) => new nn.LSTMCell(2, 2, o),
  'new GRUCell': (o) => new nn.GRUCell(2, 2, o),
  packPaddedSequence: (o) => nn.packPaddedSequence(steps(), [2], o),
  padPackedSequence: (o) => nn.padPackedSequence(nn.packPaddedSequence(steps(), [2]), o),
  padSequence: (o) => nn.padSequence([steps()], o),
  packSequence: (o) => nn.packSequence([steps()], o),
  'new MultiheadAttention': (o) => new nn.MultiheadAttention(4, 2, o),
  'MultiheadAttention.forward': (o) => new nn.MultiheadAttention(3, 1).forward(steps(), steps(), steps(), o),
  'new TransformerEncoderLayer': (o) => new nn.TransformerEncoderLayer(3, 1, o),
  'TransformerEncoderLayer.forward': (o) => encoderLayer().forward(steps(), o),
  'new TransformerDecoderLayer': (o) => new nn.TransformerDecoderLayer(3, 1, o),
  'TransformerDecoderLayer.forward': (o) => decoderLayer().forward(steps(), steps(), o),
  'new TransformerEncoder': (o) => new nn.TransformerEncoder(encoderLayer(), 1, o),
  'TransformerEncoder.forward': (o) => new nn.TransformerEncoder(encoderLayer(), 1).forward(steps(), o),
  'new TransformerDecoder': (o) => new nn.TransformerDecoder(decoderLayer(), 1, o),
  'TransformerDecoder.forward': (o) =>
    new nn.TransformerDecoder(decoderLayer(), 1).forward(steps(), steps(), o),
  'new Transformer': (o) => new nn.Transformer(3, 1, o),
  'Transformer.forward': (o) => tiny().forward(steps(), steps(), o),
  'Transformer.generateSquareSubsequentMask': (o) => nn.Transformer.generateSquareSubsequentMask(2, o),
  rotaryEmbedding: (o) => t.rotaryEmbedding(2, 2, o),
  applyRotary: (o) => t.applyRotary(t.ones([2, 2]), t.ones([2, 1]), t.ones([2, 1]), o),
  marginRankingLoss: (o) => t.marginRankingLoss(row(), row(), row(), o),
  hingeEmbeddingLoss: (o) => t.hingeEmbeddingLoss(row(), row(), o),
  softMarginLoss: (o) => t.softMarginLoss(row(), row(), o),
  multiMarginLoss: (o) => t.multiMarginLoss(row(), label(), o),
  multilabelMarginLoss: (o) => t.multilabelMarginLoss(row(), labels(), o),
  multilabelSoftMarginLoss: (o) => t.multilabelSoftMarginLoss(row(), row(), o),
  tripletMarginLoss: (o) => t.tripletMarginLoss(row(), row(), row(), o),
  tripletMarginWithDistanceLoss: (o) => t.tripletMarginWithDistanceLoss(row(), row(), row(), o),
  gaussianNllLoss: (o) => t.gaussianNllLoss(row(), row(), row(), o),
  poissonNllLoss: (o) => t.poissonNllLoss(row(), row(), o),
  pairwiseDistance: (o) => t.pairwiseDistance(row(), row(), o),
  'new MarginRankingLoss': (o) => new nn.MarginRankingLoss(o),
  'new HingeEmbeddingLoss': (o) => new nn.HingeEmbeddingLoss(o),
  'new SoftMarginLoss': (o) => new nn.SoftMarginLoss(o),
  'new MultiMarginLoss': (o) => new nn.MultiMarginLoss(o),
  'new MultiLabelMarginLoss': (o) => new nn.MultiLabelMarginLoss(o),
  'new MultiLabelSoftMarginLoss': (o) => new nn.MultiLabelSoftMarginLoss(o),
  'new TripletMarginLoss': (o) => new nn.TripletMarginLoss(o),
  'new TripletMarginWithDistanceLoss': (o) => new nn.TripletMarginWithDistanceLoss(o),
  'new GaussianNLLLoss': (o) => new nn.GaussianNLLLoss(o),
  'new PoissonNLLLoss': (o) => new nn.PoissonNLLLoss(o),
  'new PairwiseDistance': (o) => new nn.PairwiseDistance(o),
};
