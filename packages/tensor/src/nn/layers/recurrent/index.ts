// The exports of recurrent layers and packed sequences.
export {
  type CellOptions,
  GRUCell,
  LSTMCell,
  RNNCell,
  type RNNCellOptions,
} from './cells.ts';
export {
  type PackedSequence,
  type PackPaddedOptions,
  type PadPackedOptions,
  type PadSequenceOptions,
  packPaddedSequence,
  packSequence,
  padPackedSequence,
  padSequence,
} from './packed.ts';
export { GRU, LSTM, type LSTMOptions, RNN, type RNNOptions } from './rnn.ts';
export type { RecurrentOptions } from './stack.ts';
