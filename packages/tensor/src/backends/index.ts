// Chooses the kernels at first use, once per process: native ones if the addon can be loaded, otherwise the
// TypeScript reference with a warning, because it is slower by orders of magnitude.
import type { DeviceControl } from '../device/device-control.ts';
import { NativeKernelsMissing, onlyOnHost, unknownKernels } from '../errors.ts';
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
    if (!(error instanceof NativeKernelsMissing)) throw error;
    process.emitWarning(error.message, { code: 'RINGWISE_SLOW_KERNELS' });
    return referenceKernels;
  }
}

let prepare: (() => void) | null = null;

/** Sets the function that runs each time before kernels are used. Only the last one set runs. @internal */
export function beforeKernels(run: () => void): void {
  prepare = run;
}

/**
 * Returns the kernels of this process. RINGWISE_KERNELS=native|reference selects a set; throws if native ones
 * are selected but cannot be loaded.
 */
export function kernels(): Kernels {
  chosen ??= choose();
  if (prepare !== null) prepare();
  return chosen;
}

/**
 * Returns the control of CUDA devices: streams, events, captured steps and pinned memory. Throws ERR_TENSOR_DEVICE
 * if the reference kernels are in use. Whether there is a device shows only when the control is used.
 */
export function deviceControl(): DeviceControl {
  chosen ??= choose();
  if (prepare !== null) prepare();
  if (chosen.cuda === null) throw onlyOnHost('cuda');
  return chosen.cuda;
}

/** Returns the name of the kernels in use: 'native' or 'reference'. */
export const kernelsName = (): 'native' | 'reference' => kernels().name;
