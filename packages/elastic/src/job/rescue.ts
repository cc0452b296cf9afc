// Saves the state of a job that ends because its members can no longer agree. A new job can begin from the file.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { loadSnapshot, saveSnapshot } from '@ringwise/ddp';
import { makeFolder } from '@ringwise/store';
import { soloGroup } from './solo.ts';
import type { Trained } from './trained.ts';

const pattern = /^step-(\d+)\.snapshot$/;

/** Returns the path of the file with the state after `steps` steps. */
export const rescueFile = (folder: string, steps: number): string => join(folder, `step-${steps}.snapshot`);

/** Writes the state of the training. Resolves when the file is on disk. */
export async function writeRescue(folder: string, trained: Trained): Promise<void> {
  makeFolder(folder);
  const file = rescueFile(folder, trained.finalSteps);
  await alone((group) => saveSnapshot(file, trained.save(), group));
}

/** Loads the state with the most steps in the folder. Returns the number of steps; 0 if the folder has no state. */
export async function loadRescue(folder: string, trained: Trained): Promise<number> {
  if (!existsSync(folder)) return 0;
  const steps = readdirSync(folder).flatMap((name) => Number(pattern.exec(name)?.[1] ?? []));
  if (steps.length === 0) return 0;
  const file = rescueFile(folder, Math.max(...steps));
  const { revive } = trained.parts;
  trained.load(await alone((group) => loadSnapshot(file, group, revive ? { tensor: revive } : {})));
  return trained.finalSteps;
}

async function alone<T>(call: (group: ReturnType<typeof soloGroup>) => Promise<T>): Promise<T> {
  const group = soloGroup();
  try {
    return await call(group);
  } finally {
    await group.close();
  }
}
