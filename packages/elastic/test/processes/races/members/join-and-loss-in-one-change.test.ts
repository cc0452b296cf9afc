// Race 7, the members: one process joins and another one leaves in the change of the view after a loss.
import { expect, test } from 'vitest';
import { agreed, kill, runLoop } from '../../../support/loops.ts';

test('a member that leaves and one that joins while the view changes after a loss', async () => {
  const results = await runLoop(5, {
    ...{ joins: { 4: 20 }, untilJoined: 4, stepMs: 20, steps: 120 },
    faults: { 1: kill(20, 'before reduce'), 2: { step: 20, at: 'in change', do: 'leave' } },
  });
  const trained = agreed(results, [1]);
  expect([0, 2, 3, 4].map((rank) => trained.get(rank)!.end)).toEqual(['done', 'left', 'done', 'done']);
  expect(trained.get(0)!.views.at(-1)!.ids).toEqual(['0.0', '3.0', '4.0']);
  expect(trained.get(4)!.rows.at(-1)).toEqual(trained.get(0)!.rows.at(-1));
});
