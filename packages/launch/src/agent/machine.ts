// Counts the cores and GPUs of this host.

import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Machine } from './plan.ts';

/**
 * Returns the number of cores that this process may use, and the number of NVIDIA devices that it can see. On Windows,
 * which has no device files, only those that CUDA_VISIBLE_DEVICES names.
 */
export function thisMachine(): Machine {
  return { cores: availableParallelism(), gpus: countGpus() };
}

// Counts device files instead of asking the driver: a container has files only for the devices it was given.
function countGpus(): number {
  const visible = process.env.CUDA_VISIBLE_DEVICES;
  if (visible !== undefined) return visible.split(',').filter((id) => id.trim() && id.trim() !== '-1').length;
  if (process.platform === 'win32') return 0;
  return readdirSync('/dev').filter((name) => /^nvidia\d+$/.test(name)).length;
}
