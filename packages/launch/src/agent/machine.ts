import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { unsupportedPlatform } from '../errors.ts';
import type { Machine } from './plan.ts';

/** The cores this process may use, and the NVIDIA devices it can see. Throws where nothing can be launched. */
export function thisMachine(): Machine {
  if (process.platform === 'win32') throw unsupportedPlatform();
  return { cores: availableParallelism(), gpus: countGpus() };
}

// Device files, not the driver's list: a container has files only for the devices that it was given.
function countGpus(): number {
  const visible = process.env.CUDA_VISIBLE_DEVICES;
  if (visible !== undefined) return visible.split(',').filter((id) => id.trim() && id.trim() !== '-1').length;
  return readdirSync('/dev').filter((name) => /^nvidia\d+$/.test(name)).length;
}
