// Calls with options of layers for sequences, for options.test.ts.
import * as t from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';

const steps = (): t.Tensor => t.ones([2, 1, 3]);

const encoderLayer = (): nn.TransformerEncoderLayer => new nn.TransformerEncoderLayer(3, 1);
const decoderLayer = (): nn.TransformerDecoderLayer => new nn.TransformerDecoderLayer(3, 1);
const tiny = (): nn.Transformer =>
  new nn.Transformer(3, 1, { numEncoderLayers: 1, numDecoderLayers: 1, dimFeedforward: 2 });

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
};
