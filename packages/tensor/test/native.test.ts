import { afterAll, beforeAll, describe } from 'vitest';
import { loadNativeKernels } from '../src/backends/native.ts';
import { kernelsContract } from './kernels-contract.ts';

describe.each(['baseline', 'avx2', 'avx512'])('RINGWISE_CPU=%s', (level) => {
  const before = process.env.RINGWISE_CPU;
  beforeAll(() => {
    process.env.RINGWISE_CPU = level;
  });
  afterAll(() => {
    if (before === undefined) delete process.env.RINGWISE_CPU;
    else process.env.RINGWISE_CPU = before;
  });
  kernelsContract('native', loadNativeKernels);
});
