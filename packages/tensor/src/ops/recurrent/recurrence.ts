// A recurrence over all steps of one layer in one direction, as one recorded operation. The product with the input is
// computed before, for all steps at once, and so are the gradients of the weights in backward. Sequences may differ in
// length: rows are packed step by step, and longer sequences come first, so that each step has the first `sizes[t]`
// sequences.
import { graphOf } from '../../autograd/graph.ts';
import { record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { isGradEnabled } from '../../core/context.ts';
import type { Storage } from '../../core/memory/storage.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { contiguous, needsFloat32OnCpu, to } from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import { denseMatrices, type Matrices, multiply, turned } from '../matrix/matmul.ts';
import { narrow } from '../shape/views.ts';
import { composedRecurrence } from './composed.ts';
import { RowKernels, Rows } from './rows.ts';
import { type CellKind, type Rule, rules, sumOfRows } from './rules.ts';

/** The operands of recurrence(). */
export interface Recurrence {
  readonly kind: CellKind;
  /**
   * [rows, gates · width]: the product of the input of all steps with its weight, with both biases except for gru. The
   * caller hands it over: if it is dense, its memory is overwritten with the values of the gates.
   */
  readonly input: Tensor;
  /** [sequences, width]: the hidden state before the first step, and for lstm the cell state. */
  readonly states: readonly Tensor[];
  /** [gates · width, width]. */
  readonly weight: Tensor;
  /** [gates · width] of gru, added to the product with the hidden state; null for others, and without a bias. */
  readonly bias: Tensor | null;
  /** Number of sequences in each step; does not grow. */
  readonly sizes: readonly number[];
  /** Whether the steps run from the last to the first. */
  readonly isReversed: boolean;
}

/** The results of recurrence(). */
export interface Recurred {
  /** [rows, width]: the hidden state after each step. */
  readonly output: Tensor;
  /** [sequences, width]: the states of each sequence after its last step. */
  readonly states: readonly Tensor[];
}

export interface Step {
  /** The number of sequences that have this step. */
  readonly count: number;
  /** The first row. */
  readonly row: number;
}

/** Returns the steps in the order in which they run. */
export function stepsOf(sizes: readonly number[], isReversed: boolean): Step[] {
  let row = 0;
  const steps = sizes.map((count) => {
    row += count;
    return { count, row: row - count };
  });
  return isReversed ? steps.reverse() : steps;
}

/** Runs the recurrence. The caller has checked the operands. */
export function recurrence(given: Recurrence): Recurred {
  const { input, states, weight, bias } = given;
  if (needsFloat32OnCpu(input)) {
    const wide = recurrence({
      ...given,
      input: to(input, 'float32'),
      states: states.map((state) => to(state, 'float32')),
      weight: to(weight, 'float32'),
      bias: bias && to(bias, 'float32'),
    });
    const { dtype } = input;
    return { output: to(wide.output, dtype), states: wide.states.map((state) => to(state, dtype)) };
  }
  const rows = input.shape[0]!;
  const [sequences] = states[0]!.shape as [number, number];
  const whole = ofDense({
    ...given,
    input: contiguous(input),
    states: states.map(contiguous),
    weight: contiguous(weight),
    bias: bias && contiguous(bias),
  });
  return {
    output: narrow(whole, 0, 0, rows),
    states: states.map((_, i) => narrow(whole, 0, rows + i * sequences, sequences)),
  };
}

/** Memory that backward reads. */
interface Kept {
  readonly gates: Rows;
  /** States before each step, row by row. */
  readonly before: readonly Rows[];
  readonly extra: Rows | null;
}

/** Returns the input as rows that a recurrence may overwrite. */
function gatesOf(k: RowKernels, input: Tensor, width: number): Rows {
  if (input.storage.memory.count === input.count) return k.over(input, width);
  const gates = k.rows(input.shape[0]!, width);
  kernels().copy([input.count], gates.dense, input.strided);
  return gates;
}

/**
 * Returns the transposed weight. On the CPU, it is stored so if there are many steps of some rows: a product with few
 * rows reads a matrix in place if its rows are those of the product, and has to turn its result otherwise.
 */
function forwardWeight(k: RowKernels, weight: Tensor, sizes: readonly number[]): Matrices {
  const [outs, width] = weight.shape as [number, number];
  const isWorthwhile = k.device === 'cpu' && sizes.length >= 8 && sizes[0]! > 8;
  if (!isWorthwhile) return turned(denseMatrices(weight.strided, weight.shape));
  const transposed = k.rows(width, outs);
  kernels().copy([width, outs], transposed.dense, { ...weight.strided, strides: [1, width] });
  return transposed.matrix(width);
}

/** Returns output rows, then final hidden states, then final cell states: [rows + states · sequences, width]. */
function ofDense(given: Recurrence): Tensor {
  const { kind, input, states, weight, bias, sizes, isReversed } = given;
  const rule = rules[kind];
  const [rows, width] = [input.shape[0]!, weight.shape[1]!];
  const sequences = states[0]!.shape[0]!;
  const device = jointDevice(kind, input, states[0]!, weight, bias);
  const out = empty(input.dtype, [rows + rule.states * sequences, width], device);
  const k = new RowKernels(input.dtype, device);
  const kept: Kept = {
    gates: gatesOf(k, input, rule.gates * width),
    before: states.map(() => k.rows(rows, width)),
    extra: rule.extra > 0 ? k.rows(rows, rule.extra * width) : null,
  };
  const output = new Rows(out.storage, width);
  const current = states.map((_, i) => output.from(rows + i * sequences));
  for (const [i, state] of states.entries()) kernels().copy([state.count], current[i]!.dense, state.strided);
  const matrix = forwardWeight(k, weight, sizes);
  for (const { count, row } of stepsOf(sizes, isReversed)) {
    rule.forward(k, {
      count,
      width,
      states: current,
      out: output.from(row),
      before: kept.before.map((all) => all.from(row)),
      gates: kept.gates.from(row),
      extra: kept.extra?.from(row) ?? null,
      weight: matrix,
      bias: bias?.strided ?? null,
    });
  }
  const isRecording =
    isGradEnabled() && [input, ...states, weight, bias].some((a) => (a?.target ?? null) !== null);
  if (isRecording) recorded(out, given, rule, kept);
  k.done();
  return out;
}

function recorded(out: Tensor, given: Recurrence, rule: Rule, kept: Kept): void {
  const { kind, input, states, weight, bias, sizes, isReversed } = given;
  const [rows, sequences] = [input.shape[0]!, states[0]!.shape[0]!];
  const width = weight.shape[1]!;
  const { dtype, device } = out;
  const matrix = denseMatrices(weight.strided, weight.shape);
  const toInput = input.target;
  const toStates = states.map((state) => state.target);
  const [toWeight, toBias] = [weight.target, bias?.target ?? null];
  const targets = [toInput, ...toStates, toWeight, toBias];
  const saved: Storage[] = [kept.gates, ...kept.before, kept.extra].flatMap((part) => part?.storage ?? []);
  // Gradients with a graph read these, too.
  const operands = [...states, weight, ...(bias ? [bias] : [])].map(({ strided, shape, target, storage }) => {
    saved.push(storage);
    return { strided, shape, target };
  });
  record(`recurrent layer (${kind})`, out, targets, saved, (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      const { gates } = kept;
      const first = { strided: gates.dense, shape: [rows, gates.width], target: toInput };
      own.through([first, ...operands], (wholeInput, ...others) =>
        composedRecurrence({
          ...{ kind, input: wholeInput!, states: others.slice(0, rule.states) },
          ...{ weight: others[rule.states]!, bias: others[rule.states + 1] ?? null },
          steps: stepsOf(sizes, isReversed),
          gate: (index, row, count) => own.saved(gates.from(row).at(index * width), [count, width], null),
        }),
      );
      return;
    }
    const k = new RowKernels(dtype, device);
    const gradOut = new Rows(grad, width);
    const current = states.map((_, i) => {
      const own = k.rows(sequences, width);
      k.copy(sequences, width, own.at(), gradOut.from(rows + i * sequences).at());
      return own;
    });
    const gradGates = k.rows(rows, rule.gates * width);
    const gradHidden = rule.hasHiddenBias ? k.rows(rows, rule.gates * width) : null;
    const scratch = k.rows(sequences, width);
    for (const { count, row } of stepsOf(sizes, !isReversed)) {
      rule.backward(k, {
        count,
        width,
        states: current,
        gradOut: gradOut.from(row),
        scratch,
        weight: matrix,
        gates: kept.gates.from(row),
        extra: kept.extra?.from(row) ?? null,
        before: kept.before.map((all) => all.from(row)),
        gradGates: gradGates.from(row),
        gradHidden: gradHidden?.from(row) ?? null,
      });
    }
    const products = gradHidden ?? gradGates;
    if (toBias) {
      const into = toBias.begin();
      sumOfRows(into.dense, products, rows);
      toBias.end(into);
    }
    if (toWeight) {
      const [left, right] = [turned(products.matrix(rows)), kept.before[0]!.matrix(rows)];
      multiply([], toWeight.open(), left, right, rule.gates * width, width, rows, toWeight.isFilled);
      toWeight.close();
    }
    toInput?.share(gradGates.storage);
    for (const [i, target] of toStates.entries()) target?.share(current[i]!.storage);
    k.done();
  });
}
