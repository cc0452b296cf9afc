// Runs the kernel contract on the reference kernels.
import { referenceKernels } from '../../../src/backends/reference/index.ts';
import { kernelsContract } from '../../support/kernels-contract.ts';

kernelsContract('reference', () => referenceKernels);
