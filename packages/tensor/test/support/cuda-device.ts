// Where CUDA tests run: on a GPU where RINGWISE_TEST_GPU=1 says that there is one; otherwise on the software device of
// native/test/software_gpu, a driver that runs the same kernels on the CPU. Neither: they are skipped.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'vitest';
import { type CudaDevice, cudaInfo } from '../../src/backends/native/native.ts';

const library = fileURLToPath(
  new URL('../../../../native/build/Release/libsoftware_cuda.so', import.meta.url),
);
const isGpu = process.env.RINGWISE_TEST_GPU === '1';
// Before the first question to the driver, which is only looked for once in a process.
if (!isGpu && existsSync(library)) process.env.RINGWISE_LIBCUDA = library;

const info = cudaInfo();
if (isGpu && info.devices.length === 0) throw new Error(`RINGWISE_TEST_GPU=1, but ${info.reason}`);

/** The device 'cuda:0', or null. */
export const cudaDevice: CudaDevice | null = info.devices[0] ?? null;

if (cudaDevice === null) describe.skip(`CUDA: ${info.reason}`, () => test('skipped', () => {}));
