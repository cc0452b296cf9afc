// Counts the cores and GPUs of this host.

import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { unsupportedPlatform } from '../errors.ts';
import type { Machine } from './plan.ts';

/**
 * Returns the number of cores that this process may use, and the number of NVIDIA devices that it can see.
 * Throws ERR_LAUNCH_PLATFORM on Windows.
 */
export function thisMachine(): Machine {
  if (process.platform === 'win32') throw unsupportedPlatform();
  return { cores: availableParallelism(), gpus: countGpus() };
}

// Counts device files instead of asking the driver: a container has files only for the devices it was given.
function countGpus(): number {
  const visible = process.env.CUDA_VISIBLE_DEVICES;
  if (visible !== undefined) return visible.split(',').filter((id) => id.trim() && id.trim() !== '-1').length;
  return readdirSync('/dev').filter((name) => /^nvidia\d+$/.test(name)).length;
}
