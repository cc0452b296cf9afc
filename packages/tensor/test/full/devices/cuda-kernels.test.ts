// Runs the kernel contract on a CUDA device.
import { vi } from 'vitest';
import { loadNativeKernels } from '../../../src/backends/native/native.ts';
import { cudaDevice } from '../../support/cuda-device.ts';
import { kernelsContract } from '../../support/kernels-contract.ts';

// The software device takes seconds for the larger convolutions.
vi.setConfig({ testTimeout: 120_000 });

if (cudaDevice !== null) kernelsContract(`CUDA (${cudaDevice.name})`, loadNativeKernels, 'cuda:0');
