// The native kernels of losses; their operands lie in the scratch array.
import type { Input, Strided } from '../kernels.ts';
import type { CrossEntropyOperands, LossKernels } from '../loss-kernels.ts';
import type { NativeAddon } from './native-addon.ts';

export function lossKernels({ scratch, crossEntropy, crossEntropyGrad }: NativeAddon): LossKernels {
  const place = (i: number, operand: Input | null): void => {
    const isMemory = operand !== null && typeof operand !== 'number';
    scratch[2 * i] = isMemory ? operand.memory.handle : 0;
    scratch[2 * i + 1] = isMemory ? operand.offset : (operand ?? 0);
  };
  const placeRows = (first: Strided, { scores, labels, weight, kept }: CrossEntropyOperands): void => {
    place(0, first);
    place(1, scores);
    place(2, labels);
    place(3, kept);
    place(4, weight);
  };
  return {
    crossEntropy: (losses, counts, operands, { rows, cols, ignoreIndex, smoothing }) => {
      placeRows(losses, operands);
      place(5, counts);
      crossEntropy(rows, cols, ignoreIndex, smoothing);
    },
    crossEntropyGrad: (gradScores, grad, isPerRow, divisor, operands, sizes) => {
      placeRows(gradScores, operands);
      place(5, grad);
      place(6, divisor);
      crossEntropyGrad(sizes.rows, sizes.cols, sizes.ignoreIndex, sizes.smoothing, isPerRow ? 1 : 0);
    },
  };
}
