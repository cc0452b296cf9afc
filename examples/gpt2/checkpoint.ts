// Saves and loads checkpoints. One file has the model under GPT-2's parameter names; a second file has the state of the
// optimiser and of the random generator, and the number of steps done.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Generator, scope } from '@ringwise/tensor';
import type { Optimizer, OptimizerState } from '@ringwise/tensor/optim';
import { loadSafetensors, safetensorsMetadata, saveSafetensors } from '@ringwise/tensor/safetensors';
import { fromGpt2, type Gpt2, toGpt2 } from './model.ts';

const modelFile = (folder: string): string => join(folder, 'model.safetensors');
const stateFile = (folder: string): string => join(folder, 'optimizer.safetensors');

interface Run {
  readonly model: Gpt2;
  readonly optimizer: Pick<Optimizer, 'stateDict' | 'loadStateDict'>;
  readonly generator: Generator;
}

export async function saveCheckpoint(
  folder: string,
  step: number,
  { model, optimizer, generator }: Run,
): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const { tensors, groups, steps } = optimizer.stateDict();
  const state = JSON.stringify({ step, groups, steps, generator: generator.state() });
  await saveSafetensors(stateFile(folder), tensors, { state });
  await scope(() => saveSafetensors(modelFile(folder), toGpt2(model), { format: 'pt' }));
}

/** Loads the checkpoint in `folder` and returns the number of steps that it has done; 0 if there is no checkpoint. */
export async function loadCheckpoint(folder: string, { model, optimizer, generator }: Run): Promise<number> {
  if (!existsSync(stateFile(folder))) return 0;
  const { state } = await safetensorsMetadata(stateFile(folder));
  const { step, groups, steps, generator: position } = JSON.parse(state!);
  await scope(async () => {
    fromGpt2(model, await loadSafetensors(modelFile(folder)));
    const tensors = await loadSafetensors(stateFile(folder));
    optimizer.loadStateDict({ groups, steps, tensors } satisfies OptimizerState);
  });
  generator.setState(position);
  return step;
}
