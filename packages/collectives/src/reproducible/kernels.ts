// Chooses the kernels: the native ones if they can be loaded, else those in TypeScript. Both give the same
// bits.

import { loadNative } from '../backends/native.ts';
import { whyUntried } from '../backends/untried.ts';
import { dtypes } from '../dtype.ts';
import { CollectiveError } from '../errors.ts';
import type { GridKernels } from './grid.ts';
import { referenceKernels } from './reference.ts';

let kernels: GridKernels | undefined;

export function gridKernels(): GridKernels {
  kernels ??= nativeKernels() ?? referenceKernels;
  return kernels;
}

/** Returns the native kernels, or null if there is no addon that can be loaded or its system is untried. */
export function nativeKernels(): GridKernels | null {
  if (whyUntried() !== null) return null;
  try {
    const { grid } = loadNative();
    return {
      raise: (dtype, input, exponents) => grid.raise(dtypes.indexOf(dtype), input, exponents),
      add: (dtype, input, exponents, words) => grid.add(dtypes.indexOf(dtype), input, exponents, words),
      finish: (dtype, ...rest) => grid.finish(dtypes.indexOf(dtype), ...rest),
    };
  } catch (error) {
    if (CollectiveError.is(error)) return null;
    throw error;
  }
}
