import { referenceKernels } from '../src/backends/reference/index.ts';
import { kernelsContract } from './kernels-contract.ts';

kernelsContract('reference', () => referenceKernels);
