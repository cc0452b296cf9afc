// Calls with options of recurrent layers and packed sequences, for options.test.ts.
import * as t from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';

const steps = (): t.Tensor => t.ones([2, 1, 3]);

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
};
