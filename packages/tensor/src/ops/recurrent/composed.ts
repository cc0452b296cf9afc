// A recurrence composed of operations that have second gradients. Forward has kept the values of the gates, and the
// slope of an activation follows from its value. So the argument of an activation needs only a graph, and its values,
// which forward overwrote, are not read.
import type { Tensor } from '../../core/tensor.ts';
import { activated } from '../elementwise/unary.ts';
import { linear } from '../matrix/linear.ts';
import { cat } from '../shape/join.ts';
import { narrow } from '../shape/views.ts';
import type { CellKind } from './rules.ts';

/** Values that a step of a composed recurrence reads. */
interface Step {
  /** [count, gates · width]; only its graph is used. */
  readonly input: Tensor;
  /** [count, width]: the hidden state, and for lstm the cell state. */
  readonly states: readonly Tensor[];
  readonly weight: Tensor;
  readonly bias: Tensor | null;
  /** Returns the value of a gate, [count, width]. */
  readonly gate: (index: number) => Tensor;
}

const part = (x: Tensor, index: number, width: number): Tensor => narrow(x, 1, index * width, width);

const plain =
  (op: 'tanh' | 'relu') =>
  ({ input, states, weight, gate }: Step): Tensor[] => [
    activated(op, input.add(linear(states[0]!, weight)), gate(0)),
  ];

function lstm({ input, states, weight, gate }: Step): Tensor[] {
  const [h, c] = states as [Tensor, Tensor];
  const sum = input.add(linear(h, weight));
  const [i, f, g, o] = (['sigmoid', 'sigmoid', 'tanh', 'sigmoid'] as const).map((op, index) =>
    activated(op, part(sum, index, h.shape[1]!), gate(index)),
  ) as [Tensor, Tensor, Tensor, Tensor];
  const cell = f.mul(c).add(i.mul(g));
  return [o.mul(cell.tanh()), cell];
}

function gru({ input, states, weight, bias, gate }: Step): Tensor[] {
  const h = states[0]!;
  const width = h.shape[1]!;
  const product = linear(h, weight, bias);
  const sum = (index: number): Tensor => part(input, index, width).add(part(product, index, width));
  const [r, z] = [0, 1].map((index) => activated('sigmoid', sum(index), gate(index))) as [Tensor, Tensor];
  const reset = part(input, 2, width).add(r.mul(part(product, 2, width)));
  const n = activated('tanh', reset, gate(2));
  return [n.add(z.mul(h.sub(n)))];
}

const cells: Readonly<Record<CellKind, (step: Step) => Tensor[]>> = {
  tanh: plain('tanh'),
  relu: plain('relu'),
  lstm,
  gru,
};

/** The operands of composedRecurrence(), as recurrence() has them. */
export interface Composed {
  readonly kind: CellKind;
  /** [rows, gates · width]; only its graph is used. */
  readonly input: Tensor;
  readonly states: readonly Tensor[];
  readonly weight: Tensor;
  readonly bias: Tensor | null;
  /** The number of sequences and the first row of each step, in the order in which the steps run. */
  readonly steps: readonly { readonly count: number; readonly row: number }[];
  /** Returns the value of a gate in `count` rows from `row` on: [count, width]. */
  readonly gate: (index: number, row: number, count: number) => Tensor;
}

/** Returns the same as ofDense() of recurrence.ts: output rows, then the final states. */
export function composedRecurrence(given: Composed): Tensor {
  const { kind, input, weight, bias, steps, gate } = given;
  const outputs: { readonly row: number; readonly output: Tensor }[] = [];
  let states = given.states;
  for (const { count, row } of steps) {
    const sequences = states[0]!.shape[0]!;
    const after = cells[kind]({
      ...{ weight, bias, input: narrow(input, 0, row, count) },
      states: states.map((state) => narrow(state, 0, 0, count)),
      gate: (index) => gate(index, row, count),
    });
    outputs.push({ row, output: after[0]! });
    // Sequences that do not have this step keep their states.
    states = after.map((own, i) =>
      count === sequences ? own : cat([own, narrow(states[i]!, 0, count, sequences - count)], 0),
    );
  }
  const inOrder = outputs.sort((a, b) => a.row - b.row).map(({ output }) => output);
  return cat([...inOrder, ...states], 0);
}
