import { Pools, values, withRanks } from '@ringwise/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { backendContract } from '../src/testing.ts';
import { hostRanks } from './pool.ts';

const module = new URL('./host-ranks.ts', import.meta.url);

for (const [name, areApart] of [
  ['host', false],
  ['host, over TCP only', true],
] as const) {
  const pools = new Pools(hostRanks(areApart));
  backendContract({ describe, it, expect }, name, {
    run: pools.run,
  });
  afterAll(pools.end);
}

describe('a process with a group on the host backend', () => {
  it('keeps its event loop turning while it waits in a barrier', async () => {
    const turns = values<number>(await withRanks(2, module, 'idleInBarrier'));
    expect(turns[0]).toBeGreaterThan(20);
  });

  it('stays alive for a pending operation, and for nothing else', async () => {
    expect(values(await withRanks(2, module, 'onlyTheBarrier'))).toEqual(['passed', 'passed']);
  });

  it('may exit with operations pending, and its peers are told', async () => {
    const [exited, waiting] = await withRanks(2, module, 'exitWhilePending', { args: [7] });
    expect(exited).toMatchObject({ status: 'exited', exitCode: 7, signal: null });
    expect(waiting!.error).toMatchObject({ code: 'ERR_COLL_PEER_LOST', peers: [0] });
  });

  it('ends by itself when the script forgets to close', async () => {
    expect(values(await withRanks(2, module, 'endWithoutClose'))).toEqual(['sum 2', 'sum 2']);
  });

  it('can be in several groups', async () => {
    expect(values(await withRanks(2, module, 'severalGroups'))).toEqual([
      [3, 60],
      [3, 60],
    ]);
  });
});
