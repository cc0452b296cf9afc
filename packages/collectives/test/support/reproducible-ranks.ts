// The functions that the ranks of reproducible.test.ts run, each in a process of its own.

import { reproducibleDigests } from '../../contract/scenarios/reproducible.ts';
import { init } from '../../src/index.ts';

export async function digests(_rank: number): Promise<string[]> {
  await using group = await init({ backend: 'host' });
  return await reproducibleDigests(group);
}
