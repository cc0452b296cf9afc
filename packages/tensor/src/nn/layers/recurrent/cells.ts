// One step of a recurrence as a module: RNNCell, LSTMCell and GRUCell.
import { checkOptions, optionChecks } from '../../../checks/options.ts';
import { badSequenceInput, badState } from '../../../checks/sequence-errors.ts';
import { checkValue, flag, nonNegativeInteger, oneOf } from '../../../checks/value-checks.ts';
import { scope } from '../../../core/context.ts';
import { zeros } from '../../../core/creation.ts';
import { sameShape } from '../../../core/shape.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { mixedDtypes } from '../../../errors.ts';
import { isOneDtype } from '../../../ops/elementwise/autocast.ts';
import { requireTensor } from '../../../ops/elementwise/convert.ts';
import { squeeze, unsqueeze } from '../../../ops/index.ts';
import { type CellKind, rules } from '../../../ops/recurrent/rules.ts';
import { Module } from '../../module.ts';
import { pairOfStates } from './rnn.ts';
import { type CellParameters, cellParameters, namedCell, runCell } from './stack.ts';

/** Options of LSTMCell and GRUCell. */
export interface CellOptions {
  /** Whether there are biases. Default true. */
  readonly bias?: boolean;
}

/** Options of RNNCell. */
export interface RNNCellOptions extends CellOptions {
  /** Default 'tanh'. */
  readonly nonlinearity?: 'tanh' | 'relu';
}

const cellOptions = optionChecks<CellOptions>({ bias: flag });
const rnnCellOptions = optionChecks<RNNCellOptions>({ bias: flag, nonlinearity: oneOf('tanh', 'relu') });

abstract class Cell extends Module {
  /** Which cell, and with which nonlinearity. */
  readonly kind: CellKind;
  /** Width of the inputs. */
  readonly inputSize: number;
  /** Width of the hidden state. */
  readonly hiddenSize: number;
  /** Weights and biases of the cell. */
  readonly parametersOfCell: CellParameters;

  constructor(kind: CellKind, inputSize: number, hiddenSize: number, { bias = true }: CellOptions) {
    super();
    const op = this.constructor.name;
    checkValue(`${op}: inputSize`, inputSize, nonNegativeInteger);
    checkValue(`${op}: hiddenSize`, hiddenSize, nonNegativeInteger);
    this.kind = kind;
    this.inputSize = inputSize;
    this.hiddenSize = hiddenSize;
    this.parametersOfCell = cellParameters(kind, inputSize, hiddenSize, bias);
  }

  protected override members(): Iterable<[string, unknown]> {
    return namedCell(this.parametersOfCell);
  }

  /** Returns the states after one step of an input [batch, input] or [input]. */
  protected step(input: Tensor, given: readonly Tensor[] | null): Tensor[] {
    const op = this.constructor.name;
    requireTensor(op, input);
    const { inputSize, hiddenSize } = this;
    const { rank, shape, dtype, device } = input;
    if ((rank !== 1 && rank !== 2) || shape[rank - 1] !== inputSize)
      throw badSequenceInput(op, `[batch, ${inputSize}] or [${inputSize}]`, shape);
    const own = [...shape.slice(0, -1), hiddenSize];
    for (const [i, state] of (given ?? []).entries()) {
      requireTensor(op, state);
      if (!sameShape(state.shape, own)) throw badState(op, i === 0 ? 'h' : 'c', own, state.shape);
      if (!isOneDtype(state.dtype, dtype)) throw mixedDtypes(op, dtype, state.dtype);
    }
    return scope(() => {
      const empty = given === null ? zeros(own, { dtype, device }) : null;
      const states = given ?? Array.from({ length: rules[this.kind].states }, () => empty!);
      const batched = (a: Tensor): Tensor => (rank === 1 ? unsqueeze(a, 0) : a);
      const rows = batched(input);
      const found = runCell(
        this.kind,
        this.parametersOfCell,
        rows,
        states.map(batched),
        [rows.shape[0]!],
        false,
      );
      return found.states.map((state) => (rank === 1 ? squeeze(state, 0) : state));
    });
  }
}

abstract class OneStateCell extends Cell {
  /** Returns the hidden state after one step of an input [batch, input] or [input]. The state is zero by default. */
  forward(input: Tensor, h: Tensor | null = null): Tensor {
    return this.step(input, h === null ? null : [h])[0]!;
  }
}

/** One step of RNN. */
export class RNNCell extends OneStateCell {
  constructor(inputSize: number, hiddenSize: number, options: RNNCellOptions = {}) {
    checkOptions('RNNCell', options, rnnCellOptions);
    super(options.nonlinearity ?? 'tanh', inputSize, hiddenSize, options);
  }
}

/** One step of GRU. */
export class GRUCell extends OneStateCell {
  constructor(inputSize: number, hiddenSize: number, options: CellOptions = {}) {
    checkOptions('GRUCell', options, cellOptions);
    super('gru', inputSize, hiddenSize, options);
  }
}

/** One step of LSTM. */
export class LSTMCell extends Cell {
  constructor(inputSize: number, hiddenSize: number, options: CellOptions = {}) {
    checkOptions('LSTMCell', options, cellOptions);
    super('lstm', inputSize, hiddenSize, options);
  }

  /** Returns hidden state and cell state after one step of an input [batch, input] or [input]. */
  forward(input: Tensor, states: readonly [h: Tensor, c: Tensor] | null = null): [h: Tensor, c: Tensor] {
    return this.step(input, pairOfStates('LSTMCell', states)) as [Tensor, Tensor];
  }
}
