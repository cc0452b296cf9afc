// Which kernels compute. Chosen at first use, once per process: native where its addon loads, otherwise the
// TypeScript reference with a warning, because it is slower by orders of magnitude.
import { unknownKernels } from '../errors.ts';
import type { Kernels } from '../kernels.ts';
import { loadNativeKernels } from './native.ts';
import { referenceKernels } from './reference/index.ts';

let chosen: Kernels | null = null;

function choose(): Kernels {
  const wanted = process.env.RINGWISE_KERNELS || undefined;
  if (wanted === 'reference') return referenceKernels;
  if (wanted === 'native') return loadNativeKernels();
  if (wanted !== undefined) throw unknownKernels(wanted);
  try {
    return loadNativeKernels();
  } catch (error) {
    process.emitWarning((error as Error).message, { code: 'RINGWISE_SLOW_KERNELS' });
    return referenceKernels;
  }
}

/** The kernels of this process. RINGWISE_KERNELS=native|reference forces a set; native then throws if it cannot load. */
export function kernels(): Kernels {
  chosen ??= choose();
  return chosen;
}

/** Name of the kernels in use: 'native' or 'reference'. */
export const kernelsName = (): 'native' | 'reference' => kernels().name;
