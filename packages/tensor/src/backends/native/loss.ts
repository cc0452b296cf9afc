// The native kernels of losses; their operands lie in the scratch array.

import type { CrossEntropyOperands, LossKernels } from '../loss-kernels.ts';
import type { Input, Strided } from '../operands.ts';
import type { NativeAddon } from './addon.ts';

export function lossKernels({ scratch, crossEntropy, crossEntropyGrad }: NativeAddon): LossKernels {
  const setOperand = (i: number, operand: Input | null): void => {
    const isMemory = operand !== null && typeof operand !== 'number';
    scratch[2 * i] = isMemory ? operand.memory.handle : 0;
    scratch[2 * i + 1] = isMemory ? operand.offset : (operand ?? 0);
  };
  const setRows = (first: Strided, { scores, labels, weight, kept }: CrossEntropyOperands): void => {
    setOperand(0, first);
    setOperand(1, scores);
    setOperand(2, labels);
    setOperand(3, kept);
    setOperand(4, weight);
  };
  return {
    crossEntropy: (losses, counts, operands, { rows, cols, ignoreIndex, smoothing }) => {
      setRows(losses, operands);
      setOperand(5, counts);
      crossEntropy(rows, cols, ignoreIndex, smoothing);
    },
    crossEntropyGrad: (gradScores, grad, isPerRow, divisor, operands, sizes) => {
      setRows(gradScores, operands);
      setOperand(5, grad);
      setOperand(6, divisor);
      crossEntropyGrad(sizes.rows, sizes.cols, sizes.ignoreIndex, sizes.smoothing, isPerRow ? 1 : 0);
    },
  };
}
