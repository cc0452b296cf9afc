// Which kernels compute. Chosen at first use, once per process: native where its addon loads, otherwise the
// TypeScript reference with a warning, because it is slower by orders of magnitude.
import type { DeviceControl } from '../device/device-control.ts';
import { onlyOnHost, unknownKernels } from '../errors.ts';
import type { Kernels } from './kernels.ts';
import { loadNativeKernels } from './native/native.ts';
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

let prepare: (() => void) | null = null;

/** Internal: runs before kernels are used, each time. */
export function beforeKernels(run: () => void): void {
  prepare = run;
}

/** The kernels of this process. RINGWISE_KERNELS=native|reference forces a set; native then throws if it cannot load. */
export function kernels(): Kernels {
  chosen ??= choose();
  if (prepare !== null) prepare();
  return chosen;
}

/** Streams, events and steps of CUDA devices. Throws ERR_TENSOR_DEVICE where the kernels have none. */
export function deviceControl(): DeviceControl {
  chosen ??= choose();
  if (prepare !== null) prepare();
  if (chosen.cuda === null) throw onlyOnHost('cuda');
  return chosen.cuda;
}

/** Name of the kernels in use: 'native' or 'reference'. */
export const kernelsName = (): 'native' | 'reference' => kernels().name;
