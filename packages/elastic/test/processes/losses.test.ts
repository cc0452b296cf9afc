// Members of a custom loop, in processes of their own, are killed, stopped, join and leave, also while a view changes.
// The survivors have to agree on every step: its number, its view, and the value that all steps before it led to.
import { describe, expect, test } from 'vitest';
import { agreed, kill, loopSteps, runLoop } from '../support/loops.ts';

describe('a killed member costs the others no step', () => {
  test.each(['before reduce', 'before vote', 'after vote'] as const)('killed %s', async (at) => {
    const trained = agreed(await runLoop(4, { faults: { 2: kill(5, at) } }), [2]);
    expect(trained.size).toBe(3);
    for (const { end, rows, views } of trained.values()) {
      expect(end).toBe('done');
      expect(rows.map(({ step }) => step)).toEqual(
        Array.from({ length: loopSteps }, (_, index) => index + 1),
      );
      expect(views.at(-1)!.ids).toEqual(['0.0', '1.0', '3.0']);
    }
  });

  test('the one with the lowest slot', async () => {
    const trained = agreed(await runLoop(4, { faults: { 0: kill(5, 'before vote') } }), [0]);
    for (const { end, views } of trained.values()) {
      expect(end).toBe('done');
      expect(views.at(-1)!.ids).toEqual(['1.0', '2.0', '3.0']);
    }
  });

  test('two at once', async () => {
    const faults = { 0: kill(4, 'before reduce'), 3: kill(4, 'before reduce') };
    const trained = agreed(await runLoop(4, { faults }), [0, 3]);
    for (const { end, views } of trained.values()) {
      expect(end).toBe('done');
      expect(views.at(-1)!.ids).toEqual(['1.0', '2.0']);
    }
  });
});

test('a process that joins gets the state, and the others lose no step', async () => {
  const results = await runLoop(5, { joins: { 4: 20 }, untilJoined: 4, stepMs: 20, steps: 120 });
  const trained = agreed(results, []);
  const joiner = trained.get(4)!;
  expect(joiner.end).toBe('done');
  expect(joiner.views[0]!.ids).toHaveLength(5);
  expect(joiner.rows[0]!.step).toBeGreaterThan(0);
  expect(joiner.rows.at(-1)).toEqual(trained.get(0)!.rows.at(-1));
});

test('a member that leaves takes part in its last step', async () => {
  const trained = agreed(
    await runLoop(4, { faults: { 1: { step: 5, at: 'before reduce', do: 'leave' } } }),
    [],
  );
  const leaver = trained.get(1)!;
  expect(leaver.end).toBe('left');
  expect(leaver.rows.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6]);
  for (const rank of [0, 2, 3]) {
    expect(trained.get(rank)!.end).toBe('done');
    expect(trained.get(rank)!.views.at(-1)!.ids).toEqual(['0.0', '2.0', '3.0']);
  }
});
