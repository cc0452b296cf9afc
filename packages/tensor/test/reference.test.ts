import { referenceKernels } from '../src/backends/reference.ts';
import { kernelsContract } from './kernels-contract.ts';

kernelsContract('reference', () => referenceKernels);
