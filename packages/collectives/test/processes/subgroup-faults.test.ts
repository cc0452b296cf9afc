// A rank is lost, or gives up, while the members of a subgroup meet. The others must not wait until the deadline.
import { startRanks, values } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import type { Fault, Outcome } from '../support/subgroup-ranks.ts';

const module = new URL('../support/subgroup-ranks.ts', import.meta.url);

describe.each(['host', 'tcp'])('split() on %s', (backend) => {
  async function outcomes(colors: readonly number[], fault: Fault, timeoutMs = 120_000) {
    const ranks = await startRanks(colors.length, module, 'splitWithFault', {
      args: [colors, fault, timeoutMs],
      env: { RINGWISE_BACKEND: backend },
    });
    const results = await ranks.results;
    const lost = fault === 'ends after rank 1' ? [1] : [];
    return values(results.slice(0, -1).filter((_, rank) => !lost.includes(rank))) as Outcome[];
  }

  it('tells the members at once that one of them is lost', async () => {
    for (const { error, failure, left } of await outcomes([0, 0, 0], 'ends')) {
      expect(error).toMatchObject({ code: 'ERR_COLL_PEER_LOST', peers: [2] });
      expect(error!.message).toContain('split: lost rank 2');
      expect(failure).toBe('ERR_COLL_PEER_LOST');
      expect(left).toEqual([0, 1]);
    }
  });

  it('makes the groups of which the lost rank is no member', async () => {
    const found = await outcomes([0, 0, 1], 'ends');
    expect(found).toEqual([0, 1].map(() => ({ error: null, failure: null, left: null })));
  });

  it('tells the members at once that one of them is lost after a rank that is no member', async () => {
    for (const { error, failure } of await outcomes([0, 1, 0, 0], 'ends after rank 1')) {
      expect(error).toMatchObject({ code: 'ERR_COLL_PEER_LOST', peers: [1, 3] });
      expect(error!.message).toMatch(/split: lost rank 1 \(.*\), lost rank 3 \(/);
      expect(failure).toBe('ERR_COLL_PEER_LOST');
    }
  });

  it('tells the members at once that a rank has aborted the group', async () => {
    for (const { error, failure } of await outcomes([0, 0, 0], 'aborts the group')) {
      expect(error).toMatchObject({ code: 'ERR_COLL_ABORTED', peers: [2] });
      expect(error!.message).toContain('it has found bad data');
      expect(failure).toBe('ERR_COLL_ABORTED');
    }
  });

  it('ends before close(), which closes the new group', async () => {
    const ranks = await startRanks(3, module, 'closeWhileSplitting', { env: { RINGWISE_BACKEND: backend } });
    expect(values(await ranks.results)).toEqual([0, 1, 2].map(() => [true, null]));
  });
});
