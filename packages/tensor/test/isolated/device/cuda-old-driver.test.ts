// Tests a driver that is older than the compiler of the kernels. A process opens only one driver, so this test has a
// file of its own.
import { expect, test } from 'vitest';
import { ones } from '../../../src/index.ts';

process.env.RINGWISE_SOFTWARE_CUDA_VERSION = '11080';
const { cudaDevice } = await import('../../support/cuda-device.ts');
const isSoftware = process.env.RINGWISE_LIBCUDA?.endsWith('libsoftware_cuda.so') === true;

test.skipIf(cudaDevice === null || !isSoftware)('kernels that do not load name both CUDA versions', () => {
  expect(() => ones([3], { device: 'cuda' })).toThrow(
    /^cuda: the kernels were compiled by CUDA 1\d\.\d, and the driver knows CUDA 11\.8; install a newer driver \(580 or later for CUDA 13\), or build with an nvcc that is no newer: /,
  );
});
