// Long short-term memory whose hidden state is projected to another width after each step, composed of operations.
import type { Tensor } from '../../core/tensor.ts';
import { sigmoid, tanh } from '../elementwise/unary.ts';
import { linear } from '../matrix/linear.ts';
import { cat } from '../shape/join.ts';
import { narrow } from '../shape/views.ts';
import { type Recurred, stepsOf } from './recurrence.ts';

/** The operands of projectedLstm(). */
export interface Projected {
  /** [rows, 4 · width]: the product of the input of all steps with its weight, with both biases. */
  readonly input: Tensor;
  /** The hidden state [sequences, projected width] and the cell state [sequences, width] before the first step. */
  readonly states: readonly Tensor[];
  /** [4 · width, projected width]. */
  readonly weight: Tensor;
  /** [projected width, width]: projects the result of the output gate to the hidden state. */
  readonly projection: Tensor;
  /** Number of sequences in each step; does not grow. */
  readonly sizes: readonly number[];
  /** Whether the steps run from the last to the first. */
  readonly isReversed: boolean;
}

/** Runs all steps, as recurrence() does for an LSTM without a projection. */
export function projectedLstm(given: Projected): Recurred {
  const { input, weight, projection, sizes, isReversed } = given;
  const outputs: { readonly row: number; readonly output: Tensor }[] = [];
  let states = given.states;
  for (const { count, row } of stepsOf(sizes, isReversed)) {
    const sequences = states[0]!.shape[0]!;
    const [h, c] = states.map((state) => narrow(state, 0, 0, count)) as [Tensor, Tensor];
    const sum = narrow(input, 0, row, count).add(linear(h, weight));
    const width = c.shape[1]!;
    const gate = (index: number): Tensor => narrow(sum, 1, index * width, width);
    const cell = sigmoid(gate(1))
      .mul(c)
      .add(sigmoid(gate(0)).mul(tanh(gate(2))));
    const output = linear(sigmoid(gate(3)).mul(tanh(cell)), projection);
    outputs.push({ row, output });
    // Sequences that do not have this step keep their states.
    states = [output, cell].map((own, i) =>
      count === sequences ? own : cat([own, narrow(states[i]!, 0, count, sequences - count)], 0),
    );
  }
  const inOrder = outputs.sort((a, b) => a.row - b.row).map(({ output }) => output);
  return { output: cat(inOrder, 0), states };
}
