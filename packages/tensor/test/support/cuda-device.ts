// Chooses where CUDA tests run. With RINGWISE_TEST_GPU=1 it is a GPU; otherwise it is the software device of
// native/test/software_gpu, a driver that runs the same kernels on the CPU. Without either, the tests are skipped.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'vitest';
import { type CudaDevice, cudaInfo } from '../../src/backends/native/native.ts';

const library = fileURLToPath(
  new URL('../../../../native/build/Release/libsoftware_cuda.so', import.meta.url),
);
const isGpu = process.env.RINGWISE_TEST_GPU === '1';
// Set it before the first use of the driver, which a process looks for only once.
if (!isGpu && existsSync(library)) process.env.RINGWISE_LIBCUDA = library;

const info = cudaInfo();
if (isGpu && info.devices.length === 0) throw new Error(`RINGWISE_TEST_GPU=1, but ${info.reason}`);

/** The device 'cuda:0', or null. */
export const cudaDevice: CudaDevice | null = info.devices[0] ?? null;

/** Whether the device runs work only when the host waits for it. Tests can then check that work has not run yet. */
export const runsLate = cudaDevice?.name === 'software GPU';

if (cudaDevice === null) describe.skip(`CUDA: ${info.reason}`, () => test('skipped', () => {}));
