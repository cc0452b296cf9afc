// The ranks that are left after a loss go on as a smaller group. Real processes are killed, or come late.
import { startRanks, values, withDeadlines } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import { init, loopbackGroups } from '../../src/index.ts';
import { isAlive, useControl } from '../support/control.ts';

const module = new URL('../support/host-ranks.ts', import.meta.url);

describe.each(['host', 'tcp'])('shrink() on %s', (backend) => {
  const control = useControl();

  async function startWork(waitMs: number, late: number | null = null) {
    const ranks = await startRanks(4, module, 'shrinkAfterLoss', {
      args: [control.port, waitMs, late],
      env: { RINGWISE_BACKEND: backend },
    });
    await control.allReady(4, ranks);
    return ranks;
  }

  it('makes a group of the ranks that were not lost', async () => {
    const ranks = await startWork(60_000);
    ranks.kill(1);
    const results = await ranks.results;
    const left = { name: 'world[0,2-3]', ranks: [0, 2, 3], sum: 1 + 3 + 4 };
    const others = results.filter((_, rank) => rank !== 1);
    expect(values(others)).toEqual([0, 1, 2].map((place) => ({ ...left, place })));
  });

  it('also leaves out a second lost rank, after it has waited for it', async () => {
    await withDeadlines([1_500, 15_000], async (waitMs) => {
      await control.reset();
      const ranks = await startWork(waitMs);
      // Stop both first: between two kills, the second rank could notice the loss and join the smaller group.
      for (const signal of ['SIGSTOP', 'SIGKILL'] as const) {
        for (const rank of [1, 2]) ranks.kill(rank, signal);
      }
      const results = await ranks.results;
      const left = { name: 'world[0,3]', ranks: [0, 3], sum: 1 + 4 };
      expect(values([results[0]!, results[3]!])).toEqual([0, 1].map((place) => ({ ...left, place })));
    });
  });

  it('tells a rank that comes late that the others have gone on', async () => {
    await withDeadlines([1_500, 15_000], async (waitMs) => {
      await control.reset();
      const ranks = await startWork(waitMs, 2);
      ranks.kill(1);
      const first = [0, 3].map((rank) => ranks.pids[rank]!);
      await expect.poll(() => first.some(isAlive), { interval: 20 }).toBe(false);
      await control.tell('others have gone on');
      const results = await ranks.results;
      expect(results[2]!.error).toMatchObject({ code: 'ERR_COLL_INIT', verb: 'shrink' });
      expect(results[2]!.error?.message).toContain(
        'the others have continued without this rank, as ranks 0, 3',
      );
    });
  });
});

it('shrink() says what it needs', async () => {
  const [loopback] = loopbackGroups(2);
  await expect(loopback!.shrink()).rejects.toThrow('this group has no store in which its ranks could meet');
  const alone = await init({ rank: 0, size: 1 });
  await expect(alone.shrink()).rejects.toThrow(
    'it cannot tell which ranks are lost; expected ranks of the group, got none',
  );
  await expect(alone.shrink({ without: [1] })).rejects.toThrow('expected ranks of the group, got [1]');
  await alone.close();
  await expect(alone.shrink()).rejects.toThrow('the group is closed');
});
