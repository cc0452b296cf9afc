// Race 4: a process that stands still is taken for lost and goes on later. It has taken no step that the others have
// not, and finds out that the view is over before it does anything outside the job.
import { withDeadlines } from '@ringwise/testing';
import { expect, test } from 'vitest';
import { agreed, kill, options, runLoop } from '../../../support/loops.ts';

test('a stopped member is left out, and finds that out when it goes on', async () => {
  await withDeadlines([2_000, 15_000], async (deadlineMs) => {
    const results = await runLoop(4, {
      options: { ...options, settleMs: deadlineMs / 2, stallMs: deadlineMs, timeoutMs: deadlineMs },
      faults: { 3: { step: 4, at: 'before reduce', do: 'SIGSTOP' } },
    });
    const trained = agreed(results, []);
    const ends = [0, 1, 2, 3].map((rank) => trained.get(rank)!.end);
    expect(ends).toEqual(['done', 'done', 'done', 'ERR_ELASTIC_LEFT_OUT']);
  });
});

test('a member that is stopped while the view changes is left out', async () => {
  await withDeadlines([2_000, 15_000], async (deadlineMs) => {
    const results = await runLoop(4, {
      options: {
        ...{ ...options, settleMs: deadlineMs / 2, stallMs: deadlineMs },
        ...{ timeoutMs: deadlineMs, connectMs: deadlineMs },
      },
      faults: { 1: kill(4, 'before reduce'), 3: { step: 4, at: 'in change', do: 'SIGSTOP' } },
    });
    const trained = agreed(results, [1]);
    const ends = [0, 2, 3].map((rank) => trained.get(rank)!.end);
    expect(ends).toEqual(['done', 'done', 'ERR_ELASTIC_LEFT_OUT']);
    expect(trained.get(0)!.views.at(-1)!.ids).toEqual(['0.0', '2.0']);
  });
});
