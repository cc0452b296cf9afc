// Tests threads as ranks of a group in one process: real collectives through shared memory, failures and deadlines.

import { fileURLToPath } from 'node:url';
import { spawn } from '@ringwise/launch';
import { describe, expect, it } from 'vitest';

const ranks = new URL('../support/thread-ranks.ts', import.meta.url);
const failed = (exportName: string, nprocs = 2) =>
  spawn(ranks, { nprocs, threads: true, exportName }).then(
    () => null,
    (error: Error) => error,
  );
const causeOf = (error: Error | null) => (error as Error).cause as Error;

describe('threads as ranks', () => {
  it('sum, gather, share memory and pass messages as processes do', async () => {
    const results = await spawn(ranks, { nprocs: 3, threads: true, exportName: 'communicate' });
    expect(results).toEqual([0, 1, 2].map((rank) => ({ rank, wrong: 0, via: 'ringwise' })));
  });

  it('run again in the same process', async () => {
    for (let i = 0; i < 3; i++) {
      const results = await spawn(ranks, { nprocs: 2, threads: true, exportName: 'communicate' });
      expect(results).toHaveLength(2);
    }
  });

  it.each(['throwsAside', 'throwsAsideOfSync'])(
    'fail long before the deadline when one throws while others wait for it: %s',
    async (name) => {
      const error = await failed(name, 3);
      expect(error).toMatchObject({ code: 'ERR_LAUNCH_RANK_FAILED', rank: 1 });
      expect(error?.cause).toMatchObject({ name: 'RangeError', message: 'step 3' });
      expect(causeOf(error).stack).toContain(fileURLToPath(ranks));
    },
  );

  it('name the rank that stays away when the deadline of an operation is over', async () => {
    const error = await failed('staysAway');
    expect(error).toMatchObject({ code: 'ERR_LAUNCH_RANK_FAILED' });
    expect(error?.cause).toMatchObject({ code: 'ERR_COLL_TIMEOUT' });
    expect(error?.message).toContain('rank 1');
  });
});
