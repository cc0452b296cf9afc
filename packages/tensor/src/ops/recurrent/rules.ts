// One step of each kind of recurrence, forward and backward. Names of gates are PyTorch's.
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import type { Matrices } from '../matrix/matmul.ts';
import type { RowKernels, Rows } from './rows.ts';

/** The kinds of recurrences. */
export type CellKind = 'tanh' | 'relu' | 'lstm' | 'gru';

/** What a step of a forward pass reads and writes; all start at the first row of the step. */
export interface ForwardStep {
  /** Number of sequences that have this step. */
  readonly count: number;
  /** Width of the hidden state. */
  readonly width: number;
  /** Holds the product with the input; becomes the values of the gates. */
  readonly gates: Rows;
  /** Hidden states before the step, and cell states in the case of lstm. */
  readonly before: readonly Rows[];
  /** Where the new states go. They hold the states before the step. */
  readonly states: readonly Rows[];
  /** What backward needs beside gates and states. */
  readonly extra: Rows | null;
  readonly weight: Matrices;
  readonly bias: Strided | null;
}

/** What a step of a backward pass reads and writes. */
export interface BackwardStep extends Omit<ForwardStep, 'states' | 'bias'> {
  /** Gradients of the states after the step; become those before it. */
  readonly states: readonly Rows[];
  /** Gradient of the product with the input. */
  readonly gradGates: Rows;
  /** Gradient of the product with the hidden state, where that differs. */
  readonly gradHidden: Rows | null;
  readonly scratch: Rows;
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

/** h′ = activation(input + h · Wᵀ). */
const plain = (op: 'tanh' | 'relu'): Rule => ({
  gates: 1,
  states: 1,
  extra: 0,
  hasHiddenBias: false,
  forward(k, { count, width, gates, before, states, weight }) {
    k.product(count, gates, before[0]!, weight, true);
    k.map(op, count, width, gates.at(), gates.at());
    k.copy(count, width, states[0]!.at(), gates.at());
  },
  backward(k, { count, width, gates, states, gradGates, weight }) {
    k.map(`${op}Grad`, count, width, gradGates.at(), states[0]!.at(), gates.at());
    k.productBack(count, states[0]!, gradGates, weight, false);
  },
});

/** Gates i, f, g, o: c′ = σ(f) c + σ(i) tanh(g), h′ = σ(o) tanh(c′). `extra` keeps tanh(c′). */
const lstm: Rule = {
  gates: 4,
  states: 2,
  extra: 1,
  hasHiddenBias: false,
  forward(k, { count, width, gates, before, states, extra, weight }) {
    const [h, c] = states as [Rows, Rows];
    const [i, f, g, o] = [0, 1, 2, 3].map((part) => gates.at(part * width)) as [
      Strided,
      Strided,
      Strided,
      Strided,
    ];
    k.product(count, gates, before[0]!, weight, true);
    k.map('sigmoid', count, 2 * width, i, i);
    k.map('tanh', count, width, g, g);
    k.map('sigmoid', count, width, o, o);
    k.map('mul', count, width, c.at(), f, c.at());
    k.map('mulAdd', count, width, c.at(), i, g, c.at());
    k.map('tanh', count, width, extra!.at(), c.at());
    k.map('mul', count, width, h.at(), o, extra!.at());
  },
  backward(k, { count, width, gates, before, states, extra, gradGates, scratch, weight }) {
    const [dh, dc] = states as [Rows, Rows];
    const parts = (rows: Rows): Strided[] => [0, 1, 2, 3].map((part) => rows.at(part * width));
    const [i, f, g, o] = parts(gates) as [Strided, Strided, Strided, Strided];
    const [di, df, dg, dO] = parts(gradGates) as [Strided, Strided, Strided, Strided];
    k.map('mul', count, width, dO, dh.at(), extra!.at());
    k.map('sigmoidGrad', count, width, dO, dO, o);
    k.map('mul', count, width, scratch.at(), dh.at(), o);
    k.map('tanhGrad', count, width, scratch.at(), scratch.at(), extra!.at());
    k.map('add', count, width, dc.at(), dc.at(), scratch.at());
    k.map('mul', count, width, di, dc.at(), g);
    k.map('mul', count, width, df, dc.at(), before[1]!.at());
    k.map('sigmoidGrad', count, 2 * width, di, di, i);
    k.map('mul', count, width, dg, dc.at(), i);
    k.map('tanhGrad', count, width, dg, dg, g);
    k.map('mul', count, width, dc.at(), dc.at(), f);
    k.productBack(count, dh, gradGates, weight, false);
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
  forward(k, { count, width, gates, before, states, extra, weight, bias }) {
    const h = states[0]!;
    const [r, z, n] = [0, 1, 2].map((part) => gates.at(part * width)) as [Strided, Strided, Strided];
    if (bias) k.copy(count, 3 * width, extra!.at(), { ...bias, strides: [0, 1] });
    k.product(count, extra!, before[0]!, weight, bias !== null);
    k.map('add', count, 2 * width, r, r, extra!.at());
    k.map('sigmoid', count, 2 * width, r, r);
    k.map('mulAdd', count, width, n, r, extra!.at(2 * width), n);
    k.map('tanh', count, width, n, n);
    k.map('sub', count, width, h.at(), h.at(), n);
    k.map('mulAdd', count, width, h.at(), z, h.at(), n);
  },
  backward(k, { count, width, gates, before, states, extra, gradGates, gradHidden, scratch, weight }) {
    const dh = states[0]!;
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
    k.productBack(count, dh, gradHidden!, weight, true);
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
