// Kernels that take many tensors in one call. The tensors are rows of one table, which grows when it must and is reused
// by later calls.

import type { Kernels, OptimizerRule, OptimizerTensor } from '../kernels.ts';
import type { OptimizerNumbers, Strided } from '../operands.ts';
import type { NativeAddon } from './addon.ts';
import type { Writer } from './writer.ts';

/** Count, steps, and five pairs of a handle and an offset. */
const rowSize = 12;

/** Returns kind, momentum, smoothing, epsilon and variant as native/tensor/optimizer.h defines them. */
function numbersOf(rule: OptimizerRule): [number, number, number, number, boolean] {
  switch (rule.kind) {
    case 'sgd':
      return [0, rule.momentum, rule.dampening, 0, rule.nesterov];
    case 'adam':
      return [1, rule.betas[0], rule.betas[1], rule.epsilon, rule.isDecoupled];
    case 'rmsprop':
      return [2, rule.momentum, rule.alpha, rule.epsilon, rule.centered];
    case 'lion':
      return [3, rule.betas[0], rule.betas[1], 0, false];
  }
}

/** Returns the numbers that each run of a captured step reads anew; the kind, the variant and maximize stay fixed. */
export function optimizerNumbers(rule: OptimizerRule): Omit<OptimizerNumbers, 'steps'> {
  const [, momentum, smoothing, epsilon] = numbersOf(rule);
  return { lr: rule.lr, weightDecay: rule.weightDecay, momentum, smoothing, epsilon };
}

export function optimizerKernels(
  addon: NativeAddon,
  writer: Writer,
): Pick<Kernels, 'optimize' | 'totalNorm' | 'scale'> {
  let table = new Float64Array(16 * rowSize);
  const reserve = (rows: number): void => {
    if (table.length < rows * rowSize) table = new Float64Array(2 * rows * rowSize);
  };
  const setOperand = (at: number, operand: Strided | null | undefined): void => {
    table[at] = operand ? operand.memory.handle : 0;
    table[at + 1] = operand ? operand.offset : 0;
  };
  const put = (row: number, tensor: OptimizerTensor): void => {
    const at = row * rowSize;
    table[at] = tensor.count;
    table[at + 1] = tensor.steps;
    setOperand(at + 2, tensor.param);
    setOperand(at + 4, tensor.grad);
    for (let i = 0; i < 3; i++) setOperand(at + 6 + 2 * i, tensor.states[i]);
  };
  /** Writes rows that have only a count and one tensor, in the place of the parameter. */
  const putAlone = (tensors: readonly Strided[], counts: readonly number[]): void => {
    reserve(tensors.length);
    for (const [i, tensor] of tensors.entries()) {
      table.fill(0, i * rowSize, (i + 1) * rowSize);
      table[i * rowSize] = counts[i]!;
      setOperand(i * rowSize + 2, tensor);
    }
  };
  return {
    optimize: (rule, tensors) => {
      reserve(tensors.length);
      for (let i = 0; i < tensors.length; i++) put(i, tensors[i]!);
      const [kind, momentum, smoothing, epsilon, isVariant] = numbersOf(rule);
      const flags = (isVariant ? 1 : 0) | (rule.maximize ? 2 : 0);
      const { lr, weightDecay } = rule;
      addon.optimize(table, tensors.length, kind, lr, weightDecay, momentum, smoothing, epsilon, flags);
    },
    totalNorm: (out, tensors, counts) => {
      putAlone(tensors, counts);
      writer.setOperand(0, out);
      addon.totalNorm(table, tensors.length);
    },
    scale: (tensors, counts, factor, found) => {
      putAlone(tensors, counts);
      writer.setOperand(0, factor);
      writer.setOperand(1, found ?? 0);
      addon.scale(table, tensors.length);
    },
  };
}
