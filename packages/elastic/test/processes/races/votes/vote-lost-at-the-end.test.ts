// Race 1, at the end of the training: the last vote is complete on all members but one, and they have ended already.
import { expect, test } from 'vitest';
import type { Trained } from '../../../fixtures/loop.ts';
import { loopSteps, options, runLoop } from '../../../support/loops.ts';

test('a member whose last vote failed learns that the step is final, although the others have ended', async () => {
  const results = await runLoop(3, {
    options: { ...options, size: 3, min: 2, joinTimeoutMs: 60_000 },
    faults: { 1: { step: loopSteps - 1, at: 'in vote', do: 'lose' } },
  });
  const ends = results.map(({ status, value, error, stderr }) => {
    expect(status, `${error?.message} ${stderr}`).toBe('ok');
    return value as Trained;
  });
  expect(ends.map(({ end }) => end)).toEqual(['done', 'done', 'done']);
  expect(ends[1]!.views.at(-1)).toMatchObject({ ids: ['1.0'], decision: 'commit' });
  for (const { rows } of ends) expect(rows.at(-1)!.value).toBe(ends[0]!.rows.at(-1)!.value);
});
