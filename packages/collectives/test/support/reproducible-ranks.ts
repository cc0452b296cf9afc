// The functions that the ranks of reproducible.test.ts run, each in a process of its own.

import { reproducibleDigests } from '../../contract/scenarios/reproducible.ts';
import { type CollectiveError, init } from '../../src/index.ts';

export async function digests(_rank: number): Promise<string[]> {
  await using group = await init({ backend: 'host' });
  return await reproducibleDigests(group);
}

/** Only rank 1 passes contributions. Returns the error. */
export async function mixed(rank: number): Promise<{ code: string; message: string }> {
  await using group = await init({ backend: 'host' });
  const x = Float32Array.of(1, 2, 3);
  const options = rank === 1 ? { contributions: [x.slice()] } : { reproducible: true };
  const { code, message } = await group.allReduce(x, options).then(
    () => ({ code: 'none', message: '' }),
    (error: CollectiveError) => error,
  );
  return { code, message };
}
