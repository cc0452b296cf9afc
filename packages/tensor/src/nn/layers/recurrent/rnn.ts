// Recurrent layers: RNN, LSTM and GRU. Parameters, their names and initial values are PyTorch's.
import { checkOptions, optionChecks } from '../../../checks/options.ts';
import { badStateKind } from '../../../checks/sequence-errors.ts';
import { nonNegativeInteger, oneOf } from '../../../checks/value-checks.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { badOption, shown } from '../../../errors.ts';
import type { PackedSequence } from './packed.ts';
import { checkRecurrent, Recurrent, type RecurrentOptions, recurrentChecks } from './stack.ts';

/** Options of RNN. */
export interface RNNOptions extends RecurrentOptions {
  /** Default 'tanh'. */
  readonly nonlinearity?: 'tanh' | 'relu';
}

const rnnOptions = optionChecks<RNNOptions>({ ...recurrentChecks, nonlinearity: oneOf('tanh', 'relu') });

/** A recurrent module with one state. */
abstract class OneState extends Recurrent {
  /**
   * Returns the hidden states of the last layer after each step [time, batch, directions · hidden], and those of all
   * layers after the last step [layers · directions, batch, hidden]. The input is [time, batch, input], or [batch,
   * time, input] with batchFirst, or without batch, or packed; the output has the same form. h0 is zero by default.
   */
  forward(input: Tensor, h0?: Tensor | null): [output: Tensor, hn: Tensor];
  forward(input: PackedSequence, h0?: Tensor | null): [output: PackedSequence, hn: Tensor];
  forward(
    input: Tensor | PackedSequence,
    h0: Tensor | null = null,
  ): [output: Tensor | PackedSequence, hn: Tensor] {
    const [output, states] = this.run(input, h0 === null ? null : [h0]);
    return [output, states[0]!];
  }
}

/** h′ = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it. Weights start uniform in ±1/√hidden. */
export class RNN extends OneState {
  /** Function that computes the new hidden state. */
  readonly nonlinearity: 'tanh' | 'relu';

  constructor(inputSize: number, hiddenSize: number, options: RNNOptions = {}) {
    checkOptions('RNN', options, rnnOptions);
    const { nonlinearity = 'tanh' } = options;
    super(nonlinearity, inputSize, hiddenSize, options);
    this.nonlinearity = nonlinearity;
  }
}

/** Gated recurrent units, with gates r, z and n as in PyTorch. Weights start uniform in ±1/√hidden. */
export class GRU extends OneState {
  constructor(inputSize: number, hiddenSize: number, options: RecurrentOptions = {}) {
    checkRecurrent('GRU', options);
    super('gru', inputSize, hiddenSize, options);
  }
}

/** Returns the two states of an LSTM as a list, null if they are absent. */
export function pairOfStates(
  op: string,
  states: readonly [h: Tensor, c: Tensor] | null,
): readonly Tensor[] | null {
  if (states === null) return null;
  if (!Array.isArray(states) || states.length !== 2) throw badStateKind(op, 'a list [h, c]', shown(states));
  return states as readonly Tensor[];
}

/** Options of LSTM. */
export interface LSTMOptions extends RecurrentOptions {
  /** Width to which the hidden state is projected after each step, below hiddenSize. Default 0: no projection. */
  readonly projSize?: number;
}

const lstmOptions = optionChecks<LSTMOptions>({ ...recurrentChecks, projSize: nonNegativeInteger });

/**
 * Long short-term memory, with gates i, f, g and o as in PyTorch. Weights start uniform in ±1/√hidden. With projSize,
 * each hidden state is multiplied by a matrix `weight_hr`.
 */
export class LSTM extends Recurrent {
  constructor(inputSize: number, hiddenSize: number, options: LSTMOptions = {}) {
    checkOptions('LSTM', options, lstmOptions);
    const { projSize = 0 } = options;
    super('lstm', inputSize, hiddenSize, options, projSize);
    if (projSize >= hiddenSize)
      throw badOption('LSTM: projSize', `an integer below hiddenSize ${hiddenSize}`, shown(projSize));
  }

  /** Does the same as RNN.forward, with two states: the hidden state and the cell state. */
  forward(
    input: Tensor,
    states?: readonly [h0: Tensor, c0: Tensor] | null,
  ): [output: Tensor, states: [hn: Tensor, cn: Tensor]];
  forward(
    input: PackedSequence,
    states?: readonly [h0: Tensor, c0: Tensor] | null,
  ): [output: PackedSequence, states: [hn: Tensor, cn: Tensor]];
  forward(
    input: Tensor | PackedSequence,
    states: readonly [h0: Tensor, c0: Tensor] | null = null,
  ): [output: Tensor | PackedSequence, states: [hn: Tensor, cn: Tensor]] {
    const [output, last] = this.run(input, pairOfStates('LSTM', states));
    return [output, last as [Tensor, Tensor]];
  }
}
