import { loadNativeKernels } from '../src/backends/native.ts';
import { cudaDevice } from './cuda-device.ts';
import { kernelsContract } from './kernels-contract.ts';

if (cudaDevice !== null) kernelsContract(`CUDA (${cudaDevice.name})`, loadNativeKernels, 'cuda:0');
