// Tests a device that fails while a program awaits it: the wait must end with an error. The process has no device
// afterwards, so this test has a file of its own.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { CudaStream, ones } from '../../../src/index.ts';
import { cudaDevice } from '../../support/cuda-device.ts';

const addon = fileURLToPath(
  new URL('../../../../../native/build/Release/device_memory.node', import.meta.url),
);
const isSoftware = process.env.RINGWISE_LIBCUDA?.endsWith('libsoftware_cuda.so') === true;

test.skipIf(cudaDevice === null || !isSoftware || !existsSync(addon))(
  'promises that wait for a device that fails are rejected with the error of the driver',
  async () => {
    const x = ones([1000], { device: 'cuda' });
    await expect(x.data()).resolves.toHaveLength(1000);
    (createRequire(import.meta.url)(addon) as { breakDevice: () => void }).breakDevice();
    const failed = {
      code: 'ERR_TENSOR_KERNELS',
      message: expect.stringMatching(
        /^cuda: what was started earlier has failed: .*CUDA_ERROR_ILLEGAL_ADDRESS/,
      ),
    };
    await expect(x.add(1).data()).rejects.toMatchObject(failed);
    ones([10], { device: 'cuda' });
    await expect(new CudaStream('cuda', 0).done()).rejects.toMatchObject(failed);
    expect(() => x.dataSync()).toThrow(/CUDA_ERROR_ILLEGAL_ADDRESS/);
  },
);
