// Race 18: the process that keeps the store is killed, and then a member. The store of this test cannot move to another
// host. Steps do not use it, so the members go on without it; a change of the view needs it and fails.
import { startRanks } from '@ringwise/testing';
import { expect, test } from 'vitest';
import type { Trained } from '../../../fixtures/loop.ts';
import { kill, loop, options } from '../../../support/loops.ts';

test('members end with a sentence when the process that keeps the store is lost before a change', async () => {
  const plan = { steps: 1_000, options: { ...options, size: 3 }, joins: {}, stepMs: 10 };
  const faults = { 1: kill(100, 'before reduce') };
  const args = [{ ...plan, faults }];
  const running = await startRanks(4, loop, 'withoutStore', { args });
  const results = await running.results;
  expect(results.map(({ signal }) => signal)).toEqual(['SIGKILL', null, 'SIGKILL', null]);
  for (const rank of [1, 3]) {
    const { value, error, stderr } = results[rank]!;
    // Steps need no store; the change after the loss of a member does.
    expect(value, `${error?.message} ${stderr}`).toMatchObject({ end: 'ERR_ELASTIC_STORE' });
    expect((value as Trained).rows).toHaveLength(100);
  }
});
