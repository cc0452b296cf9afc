// Layers and directions of a recurrent module: parameters, and how outputs of one layer become input of the next.

import { checkOptions, optionChecks } from '../../../checks/options.ts';
import { badSequenceInput, badState, emptySequence } from '../../../checks/sequence-errors.ts';
import { atLeastOne, checkValue, flag, probability } from '../../../checks/value-checks.ts';
import { scope } from '../../../core/context.ts';
import { zeros } from '../../../core/creation.ts';
import { sameShape } from '../../../core/shape.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { mixedDtypes } from '../../../errors.ts';
import { isOneDtype, recast } from '../../../ops/elementwise/autocast.ts';
import { requireTensor } from '../../../ops/elementwise/convert.ts';
import {
  add,
  cat,
  dropout,
  indexSelect,
  linear,
  reshape,
  select,
  squeeze,
  stack,
  transpose,
  unsqueeze,
} from '../../../ops/index.ts';
import { projectedLstm } from '../../../ops/recurrent/projected.ts';
import { type Recurred, recurrence } from '../../../ops/recurrent/recurrence.ts';
import { type CellKind, rules } from '../../../ops/recurrent/rules.ts';
import { uniformParameter } from '../../init.ts';
import { Module } from '../../module.ts';
import { isPacked, type PackedSequence } from './packed.ts';

/** Options of RNN, LSTM and GRU. */
export interface RecurrentOptions {
  /** Number of layers, each on top of the one before. Default 1. */
  readonly numLayers?: number;
  /** Whether there are biases. Default true. */
  readonly bias?: boolean;
  /** Whether input and output are [batch, time, width] instead of [time, batch, width]. Default false. */
  readonly batchFirst?: boolean;
  /** Probability with which an output of all layers but the last is dropped while training. Default 0. */
  readonly dropout?: number;
  /** Whether a second recurrence runs from the last step to the first. Default false. */
  readonly bidirectional?: boolean;
}

export const recurrentChecks = {
  numLayers: atLeastOne,
  bias: flag,
  batchFirst: flag,
  dropout: probability,
  bidirectional: flag,
};
export const recurrentOptions = optionChecks<RecurrentOptions>(recurrentChecks);

/** The parameters of one layer in one direction. Biases and the projection are null without them. */
export interface CellParameters {
  /** [gates · hidden, input] */
  readonly weightIh: Tensor;
  /** [gates · hidden, hidden], or [gates · hidden, projected] */
  readonly weightHh: Tensor;
  readonly biasIh: Tensor | null;
  readonly biasHh: Tensor | null;
  /** [projected, hidden] */
  readonly weightHr: Tensor | null;
}

/** Makes the parameters of one cell, uniform in ±1/√hidden, which is PyTorch's default. */
export function cellParameters(
  kind: CellKind,
  input: number,
  hidden: number,
  hasBias: boolean,
  projected = 0,
): CellParameters {
  const rows = rules[kind].gates * hidden;
  const bound = 1 / Math.sqrt(hidden);
  return {
    weightIh: uniformParameter([rows, input], bound),
    weightHh: uniformParameter([rows, projected || hidden], bound),
    biasIh: hasBias ? uniformParameter([rows], bound) : null,
    biasHh: hasBias ? uniformParameter([rows], bound) : null,
    weightHr: projected > 0 ? uniformParameter([projected, hidden], bound) : null,
  };
}

/** Yields the parameters of a cell with PyTorch's names. */
export function* namedCell(cell: CellParameters, suffix = ''): Generator<[string, unknown]> {
  yield [`weight_ih${suffix}`, cell.weightIh];
  yield [`weight_hh${suffix}`, cell.weightHh];
  yield [`bias_ih${suffix}`, cell.biasIh];
  yield [`bias_hh${suffix}`, cell.biasHh];
  yield [`weight_hr${suffix}`, cell.weightHr];
}

/** Runs one cell over packed rows; see recurrence() and projectedLstm(). */
export function runCell(
  kind: CellKind,
  cell: CellParameters,
  rows: Tensor,
  states: readonly Tensor[],
  sizes: readonly number[],
  isReversed: boolean,
): Recurred {
  const { weightIh, weightHh, biasIh, biasHh, weightHr } = cell;
  const operands = [weightIh, weightHh, biasIh, biasHh, weightHr, rows, ...states];
  const lowered = recast('low', operands, (ih, hh, bIh, bHh, hr, own, ...before) => {
    const low = { weightIh: ih!, weightHh: hh!, biasIh: bIh!, biasHh: bHh!, weightHr: hr! };
    return runCell(kind, low, own!, before as Tensor[], sizes, isReversed);
  });
  if (lowered) return lowered;
  const isApart = rules[kind].hasHiddenBias;
  const bias = biasIh && biasHh && !isApart ? add(biasIh, biasHh) : biasIh;
  const input = linear(rows, weightIh, bias);
  if (weightHr)
    return projectedLstm({ input, states, weight: weightHh, projection: weightHr, sizes, isReversed });
  return recurrence({
    ...{ kind, input, states, weight: weightHh, bias: isApart ? biasHh : null },
    ...{ sizes, isReversed },
  });
}

/** The input of a module as rows, and how to turn rows of the output into its form. */
interface Packing {
  readonly rows: Tensor;
  readonly sizes: readonly number[];
  readonly isBatched: boolean;
  readonly packed: PackedSequence | null;
}

/** Base of RNN, LSTM and GRU. */
export abstract class Recurrent extends Module {
  /** Which cell, and with which nonlinearity. */
  readonly kind: CellKind;
  /** Width of the inputs. */
  readonly inputSize: number;
  /** Width of the hidden state. */
  readonly hiddenSize: number;
  /** Number of layers, each of which reads the output of the one below. */
  readonly numLayers: number;
  /** Whether the cells have biases. */
  readonly bias: boolean;
  /** Whether tensors are [batch, time, width] instead of [time, batch, width]. */
  readonly batchFirst: boolean;
  /** Probability of dropout between layers while training. */
  readonly dropout: number;
  /** Whether each layer also reads the input backwards. */
  readonly bidirectional: boolean;
  /** Width to which the hidden state is projected; 0 without a projection. */
  readonly projSize: number;
  /** For each layer, the parameters of its directions. */
  readonly cells: readonly (readonly CellParameters[])[];

  constructor(
    kind: CellKind,
    inputSize: number,
    hiddenSize: number,
    options: RecurrentOptions,
    projSize = 0,
  ) {
    super();
    const op = this.constructor.name;
    checkValue(`${op}: inputSize`, inputSize, atLeastOne);
    checkValue(`${op}: hiddenSize`, hiddenSize, atLeastOne);
    const { numLayers = 1, bias = true, batchFirst = false, dropout = 0, bidirectional = false } = options;
    this.kind = kind;
    this.inputSize = inputSize;
    this.hiddenSize = hiddenSize;
    this.numLayers = numLayers;
    this.bias = bias;
    this.batchFirst = batchFirst;
    this.dropout = dropout;
    this.bidirectional = bidirectional;
    this.projSize = projSize;
    const width = this.#width * this.#directions;
    this.cells = Array.from({ length: numLayers }, (_, layer) =>
      Array.from({ length: this.#directions }, () =>
        cellParameters(kind, layer === 0 ? inputSize : width, hiddenSize, bias, projSize),
      ),
    );
  }

  get #directions(): number {
    return this.bidirectional ? 2 : 1;
  }

  /** Width of the hidden state after the projection. */
  get #width(): number {
    return this.projSize || this.hiddenSize;
  }

  protected override *members(): Iterable<[string, unknown]> {
    for (const [layer, directions] of this.cells.entries())
      for (const [direction, cell] of directions.entries())
        yield* namedCell(cell, `_l${layer}${direction === 1 ? '_reverse' : ''}`);
  }

  /**
   * Runs all layers. `states` are [layers · directions, batch, hidden], the first with the projected width, or without
   * batch; zeros by default.
   */
  protected run(
    input: Tensor | PackedSequence,
    states: readonly Tensor[] | null,
  ): [output: Tensor | PackedSequence, states: Tensor[]] {
    return scope(() => {
      const packing = this.#packed(input);
      const initial = this.#initial(packing, states);
      const [rows, last] = this.#layers(packing.rows, initial, packing.sizes);
      return [this.#unpacked(rows, packing), this.#final(last, packing)];
    });
  }

  #packed(input: Tensor | PackedSequence): Packing {
    const op = this.constructor.name;
    const { inputSize } = this;
    if (isPacked(input)) {
      const { data, batchSizes } = input;
      if (data.rank !== 2 || data.shape[1] !== inputSize)
        throw badSequenceInput(op, `[..., ${inputSize}]`, data.shape);
      return { rows: data, sizes: batchSizes, isBatched: true, packed: input };
    }
    requireTensor(op, input);
    const { rank, shape } = input;
    if ((rank !== 2 && rank !== 3) || shape[rank - 1] !== inputSize)
      throw badSequenceInput(
        op,
        `[${this.batchFirst ? 'batch, time' : 'time, batch'}, ${inputSize}] or [time, ${inputSize}]`,
        shape,
      );
    const isBatched = rank === 3;
    const byTime = !isBatched ? unsqueeze(input, 1) : this.batchFirst ? transpose(input, 0, 1) : input;
    const [time, batch] = byTime.shape as [number, number];
    if (time === 0) throw emptySequence(op);
    const rows = reshape(byTime, [time * batch, inputSize]);
    return { rows, sizes: Array.from({ length: time }, () => batch), isBatched, packed: null };
  }

  /** Returns the states before the first step: [layers · directions, batch, hidden], in the order of packing. */
  #initial({ rows, sizes, isBatched, packed }: Packing, given: readonly Tensor[] | null): readonly Tensor[] {
    const { hiddenSize, numLayers } = this;
    const op = this.constructor.name;
    const { dtype } = this.cells[0]![0]!.weightHh;
    if (!isOneDtype(rows.dtype, dtype)) throw mixedDtypes(op, rows.dtype, dtype);
    const count = numLayers * this.#directions;
    const widths = [this.#width, hiddenSize].slice(0, rules[this.kind].states);
    if (given === null)
      return widths.map((width) =>
        zeros([count, sizes[0]!, width], { dtype: rows.dtype, device: rows.device }),
      );
    return given.map((state, i) => {
      requireTensor(op, state);
      const expected = isBatched ? [count, sizes[0]!, widths[i]!] : [count, widths[i]!];
      if (!sameShape(state.shape, expected)) throw badState(op, i === 0 ? 'h0' : 'c0', expected, state.shape);
      if (!isOneDtype(state.dtype, rows.dtype)) throw mixedDtypes(op, rows.dtype, state.dtype);
      const own = isBatched ? state : unsqueeze(state, 1);
      const order = packed?.sortedIndices;
      return order ? indexSelect(own, 1, order) : own;
    });
  }

  #layers(rows: Tensor, initial: readonly Tensor[], sizes: readonly number[]): [Tensor, Tensor[][]] {
    let own = rows;
    const last: Tensor[][] = initial.map(() => []);
    for (const [layer, directions] of this.cells.entries()) {
      const outputs = directions.map((cell, direction) => {
        const at = layer * this.#directions + direction;
        const before = initial.map((state) => select(state, 0, at));
        const { output, states } = runCell(this.kind, cell, own, before, sizes, direction === 1);
        for (const [i, state] of states.entries()) last[i]!.push(state);
        return output;
      });
      own = outputs.length === 1 ? outputs[0]! : cat(outputs, 1);
      if (layer < this.numLayers - 1) own = dropout(own, this.dropout, { training: this.training });
    }
    return [own, last];
  }

  #unpacked(rows: Tensor, { sizes, isBatched, packed }: Packing): Tensor | PackedSequence {
    if (packed) return { ...packed, data: rows };
    const byTime = reshape(rows, [sizes.length, sizes[0]!, rows.shape[1]!]);
    if (!isBatched) return squeeze(byTime, 1);
    return this.batchFirst ? transpose(byTime, 0, 1) : byTime;
  }

  #final(last: readonly Tensor[][], { isBatched, packed }: Packing): Tensor[] {
    return last.map((ofCells) => {
      const all = stack(ofCells, 0);
      if (!isBatched) return squeeze(all, 1);
      const order = packed?.unsortedIndices;
      return order ? indexSelect(all, 1, order) : all;
    });
  }
}

/** Checks the options of a recurrent module. */
export const checkRecurrent = (op: string, options: RecurrentOptions): void =>
  checkOptions(op, options, recurrentOptions);
