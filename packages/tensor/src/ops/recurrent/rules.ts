// One step of each kind of recurrence, forward and backward. Names of gates are PyTorch's.
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import type { Matrices } from '../matrix/matmul.ts';
import type { RowKernels, Rows } from './rows.ts';

/** The kinds of recurrences. */
export type CellKind = 'tanh' | 'relu' | 'lstm' | 'gru';

/** Operands of a step of a forward pass; all start at the first row of the step. */
export interface ForwardStep {
  /** Number of sequences that have this step. */
  readonly count: number;
  /** Width of the hidden state. */
  readonly width: number;
  /** Holds the product with the input; becomes the values of the gates. */
  readonly gates: Rows;
  /** The states before the step, hidden and in the case of lstm cell; they become those after it. */
  readonly states: readonly Rows[];
  /** Receives the states before the step. */
  readonly before: readonly Rows[];
  /** Receives the hidden states after the step. */
  readonly out: Rows;
  /** Further values that backward needs beside gates and states. */
  readonly extra: Rows | null;
  /** [width, gates · width]. */
  readonly weight: Matrices;
  readonly bias: Strided | null;
}

/** Operands of a step of a backward pass. */
export interface BackwardStep extends Omit<ForwardStep, 'states' | 'out' | 'weight' | 'bias'> {
  /** Gradients of the states after the step, without gradOut; become those before it. */
  readonly states: readonly Rows[];
  /** The gradient of `out`. */
  readonly gradOut: Rows;
  /** Gradient of the product with the input. */
  readonly gradGates: Rows;
  /** Gradient of the product with the hidden state, where that differs. */
  readonly gradHidden: Rows | null;
  readonly scratch: Rows;
  /** [gates · width, width]. */
  readonly weight: Matrices;
}

/** One kind of recurrence. */
export interface Rule {
  /** Number of gates: the rows of weights for each element of the hidden state. */
  readonly gates: number;
  /** 2 if there is a cell state beside the hidden state. */
  readonly states: number;
  /** Width of `extra` in units of the hidden state; 0 for none. */
  readonly extra: number;
  /** Whether the step adds the bias of the hidden state itself, because a gate multiplies it. */
  readonly hasHiddenBias: boolean;
  forward(k: RowKernels, step: ForwardStep): void;
  backward(k: RowKernels, step: BackwardStep): void;
}

/** Copies the states before a step to where backward reads them. */
function keepStates(k: RowKernels, { count, width, before, states }: ForwardStep): void {
  for (const [i, state] of states.entries()) k.copy(count, width, before[i]!.at(), state.at());
}

/** h′ = activation(input + h · Wᵀ). */
const plain = (op: 'tanh' | 'relu'): Rule => ({
  gates: 1,
  states: 1,
  extra: 0,
  hasHiddenBias: false,
  forward(k, step) {
    const { count, width, gates, states, out, weight } = step;
    keepStates(k, step);
    k.product(count, gates, states[0]!, weight, true);
    k.map(op, count, width, gates.at(), gates.at());
    for (const to of [states[0]!, out]) k.copy(count, width, to.at(), gates.at());
  },
  backward(k, { count, width, gates, states, gradOut, gradGates, weight }) {
    const dh = states[0]!;
    k.map('add', count, width, dh.at(), dh.at(), gradOut.at());
    k.map(`${op}Grad`, count, width, gradGates.at(), dh.at(), gates.at());
    k.product(count, dh, gradGates, weight, false);
  },
});

/** Gates i, f, g, o: c′ = σ(f) c + σ(i) tanh(g), h′ = σ(o) tanh(c′). `extra` keeps tanh(c′). */
const lstm: Rule = {
  gates: 4,
  states: 2,
  extra: 1,
  hasHiddenBias: false,
  forward(k, { count, width, gates, states, before, out, extra, weight }) {
    if (count === 0) return;
    const [hidden, cell] = states as [Rows, Rows];
    k.product(count, gates, hidden, weight, true);
    kernels().lstm(
      {
        gates: gates.dense,
        hidden: hidden.dense,
        cell: cell.dense,
        out: out.dense,
        hiddenBefore: before[0]!.dense,
        cellBefore: before[1]!.dense,
        cellTanh: extra!.dense,
      },
      { rows: count, width },
    );
  },
  backward(k, { count, width, gates, before, states, extra, gradOut, gradGates, weight }) {
    if (count === 0) return;
    const [gradHidden, gradCell] = states as [Rows, Rows];
    kernels().lstmGrad(
      {
        gradGates: gradGates.dense,
        gradCell: gradCell.dense,
        gates: gates.dense,
        cellBefore: before[1]!.dense,
        cellTanh: extra!.dense,
        gradHidden: gradHidden.dense,
        gradOut: gradOut.dense,
      },
      { rows: count, width },
    );
    k.product(count, gradHidden, gradGates, weight, false);
  },
};

/**
 * Gates r, z, n: n = tanh(input + σ(r) (h · Wᵀ + bias)), h′ = n + σ(z) (h − n). `extra` keeps h · Wᵀ + bias of all
 * gates.
 */
const gru: Rule = {
  gates: 3,
  states: 1,
  extra: 3,
  hasHiddenBias: true,
  forward(k, step) {
    const { count, width, gates, before, states, out, extra, weight, bias } = step;
    const h = states[0]!;
    keepStates(k, step);
    const [r, z, n] = [0, 1, 2].map((part) => gates.at(part * width)) as [Strided, Strided, Strided];
    if (bias) k.copy(count, 3 * width, extra!.at(), { ...bias, strides: [0, 1] });
    k.product(count, extra!, before[0]!, weight, bias !== null);
    k.map('add', count, 2 * width, r, r, extra!.at());
    k.map('sigmoid', count, 2 * width, r, r);
    k.map('mulAdd', count, width, n, r, extra!.at(2 * width), n);
    k.map('tanh', count, width, n, n);
    k.map('sub', count, width, h.at(), h.at(), n);
    k.map('mulAdd', count, width, h.at(), z, h.at(), n);
    k.copy(count, width, out.at(), h.at());
  },
  backward(
    k,
    { count, width, gates, before, states, extra, gradOut, gradGates, gradHidden, scratch, weight },
  ) {
    const dh = states[0]!;
    k.map('add', count, width, dh.at(), dh.at(), gradOut.at());
    const [r, z, n] = [0, 1, 2].map((part) => gates.at(part * width)) as [Strided, Strided, Strided];
    const [dr, dz, dn] = [0, 1, 2].map((part) => gradGates.at(part * width)) as [Strided, Strided, Strided];
    k.map('mul', count, width, scratch.at(), dh.at(), z);
    k.map('sub', count, width, dn, dh.at(), scratch.at());
    k.map('tanhGrad', count, width, dn, dn, n);
    k.map('sub', count, width, dz, before[0]!.at(), n);
    k.map('mul', count, width, dz, dz, dh.at());
    k.map('mul', count, width, dr, dn, extra!.at(2 * width));
    k.map('sigmoidGrad', count, 2 * width, dr, dr, r);
    k.copy(count, 2 * width, gradHidden!.at(), dr);
    k.map('mul', count, width, gradHidden!.at(2 * width), dn, r);
    k.copy(count, width, dh.at(), scratch.at());
    k.product(count, dh, gradHidden!, weight, true);
  },
};

export const rules: Readonly<Record<CellKind, Rule>> = {
  tanh: plain('tanh'),
  relu: plain('relu'),
  lstm,
  gru,
};

/** Adds the sum of `count` rows to a gradient. */
export function sumOfRows(out: Strided, rows: Rows, count: number): void {
  kernels().reduce('sum', [count, rows.width], { ...out, strides: [0, 1] }, rows.at());
}
