// Runs the contract suite on native kernels of a kernel level: they are compiled for several instruction sets.
import { vi } from 'vitest';
import { loadAddon } from '../../src/backends/native/addon.ts';
import { loadNativeKernels } from '../../src/backends/native/native.ts';
import { kernelsContract } from './kernels-contract.ts';

export const levels = ['baseline', 'avx2', 'avx512'] as const;

/** The index of the highest level that this CPU has. */
export const bestLevel = levels.indexOf(loadAddon().useCpu(levels.length - 1) as (typeof levels)[number]);

/** Registers the contract suite for the native kernels of a level, which this CPU must have. */
export function contractAtLevel(level: string): void {
  kernelsContract(`native ${level}`, () => {
    vi.stubEnv('RINGWISE_CPU', level);
    const kernels = loadNativeKernels();
    vi.unstubAllEnvs();
    return kernels;
  });
}
