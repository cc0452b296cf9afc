// Collects garbage, so that a test can compare exact figures of memory before and after calls that take turns of the
// event loop: at any such turn the collector may free what earlier tests of the file have left.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type MemoryUse, memory } from '../../src/index.ts';

setFlagsFromString('--expose-gc');

/** Collects garbage once. Finalisers run at a later turn of the event loop. */
export const collect = runInNewContext('gc') as () => void;

/** Collects garbage until five rounds in a row have freed no tensor of host or `device`. Returns `memory(device)`. */
export async function collected(device = 'cpu'): Promise<MemoryUse> {
  const count = (): number => memory().tensors + (device === 'cpu' ? 0 : memory(device).tensors);
  for (let quiet = 0, last = count(); quiet < 5; quiet++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
    if (count() !== last) quiet = -1;
    last = count();
  }
  return memory(device);
}
