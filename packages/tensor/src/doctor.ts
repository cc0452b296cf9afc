// This package's part of `ringwise doctor`, which imports it as @ringwise/tensor/doctor.
import { existsSync, readdirSync } from 'node:fs';
import { type CudaInfo, type CudaLibrary, loadedAddon } from './backends/native/addon.ts';
import { cudaInfoOf } from './backends/native/cuda.ts';
import { NativeKernelsMissing } from './errors.ts';

export interface Finding {
  readonly name: string;
  readonly state: 'ok' | 'note' | 'wrong';
  readonly text: string;
  /** The next step, for a finding that is wrong. */
  readonly fix?: string;
}

/** The highest level of useCpu(): the addon then uses the best kernels that this CPU can run. */
const bestLevel = 2;

/** Yields findings about the addon, the GPUs and the vendor's libraries. */
export async function* examine(): AsyncGenerator<Finding> {
  const name = 'tensor.node';
  try {
    const { addon, path } = loadedAddon();
    yield { name, state: 'ok', text: `${path}; best kernels of this CPU: ${addon.useCpu(bestLevel)}` };
    const info = cudaInfoOf(addon);
    yield cudaFinding(info, hasDeviceFiles(), process.env.CUDA_VISIBLE_DEVICES);
    if (info.devices.length > 0) yield librariesFinding(info.libraries);
  } catch (error) {
    if (!(error instanceof NativeKernelsMissing)) throw error;
    yield { name, state: 'wrong', text: error.message, fix: error.advice };
  }
}

/** Checks that CUDA finds the GPUs that the system seems to have, unless the user has hidden them. */
export function cudaFinding(
  info: Omit<CudaInfo, 'libraries'>,
  hasDevices: boolean,
  visible: string | undefined,
): Finding {
  const name = 'cuda';
  const { compiled, kernelsVersion, driver, driverVersion, devices, reason } = info;
  if (devices.length > 0) {
    const list = devices.map(
      (each, i) =>
        `${i}: ${each.name}, ${(each.memoryBytes / 2 ** 30).toFixed(0)} GiB, ${each.computeCapability}`,
    );
    const text = [`driver ${driver}, CUDA ${driverVersion}; kernels of CUDA ${kernelsVersion}`, ...list].join(
      '\n',
    );
    if (majorOf(kernelsVersion) <= majorOf(driverVersion)) return { name, state: 'ok', text };
    const fix = `Install a driver that knows CUDA ${kernelsVersion} (580 or newer for CUDA 13), or build the kernels with the toolkit of CUDA ${driverVersion}.`;
    return { name, state: 'wrong', text: `${text}\nthe driver cannot load kernels of a newer CUDA`, fix };
  }
  const isHidden = visible !== undefined && !visible.split(',').some((id) => /^(?!-1$)\S/.test(id.trim()));
  if (!hasDevices || isHidden) return { name, state: 'note', text: `no GPUs: ${reason}` };
  const fix = !compiled
    ? 'Install an addon with CUDA kernels, or build it with the CUDA toolkit on the PATH.'
    : driver === null
      ? "Install the driver's libcuda, or give it to the container: --gpus all, NVIDIA_DRIVER_CAPABILITIES=compute,utility."
      : `See nvidia-smi: the driver must know CUDA ${kernelsVersion} (580 or newer for CUDA 13), and this process be permitted to use the devices.`;
  return {
    name,
    state: 'wrong',
    text: `there are /dev/nvidia files, but no GPU can be used: ${reason}`,
    fix,
  };
}

const majorOf = (version: string | null): number => Number.parseInt(version ?? '0', 10);

/** Reports the vendor's libraries. A missing one is only a note, because this package's kernels compute instead. */
export function librariesFinding(libraries: readonly CudaLibrary[]): Finding {
  const lines = libraries.map(({ name, path, version, reason }) =>
    reason === '' ? `${name} ${version}: ${path}` : `${name}: ${reason}; own kernels are used`,
  );
  const isComplete = libraries.every(({ reason }) => reason === '');
  return { name: 'cuda libraries', state: isComplete ? 'ok' : 'note', text: lines.join('\n') };
}

/** Returns whether the system seems to have NVIDIA GPUs. */
function hasDeviceFiles(): boolean {
  return existsSync('/dev') && readdirSync('/dev').some((file) => /^nvidia\d+$/.test(file));
}
