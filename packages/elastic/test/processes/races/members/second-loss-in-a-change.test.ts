// Race 3: a second process is killed while the others agree on the view without the first one.
import { expect, test } from 'vitest';
import { agreed, kill, runLoop } from '../../../support/loops.ts';

test('a second one while the view changes', async () => {
  const faults = { 1: kill(4, 'before reduce'), 2: kill(4, 'in change') };
  const trained = agreed(await runLoop(4, { faults }), [1, 2]);
  for (const { end, views } of trained.values()) {
    expect(end).toBe('done');
    expect(views.at(-1)!.ids).toEqual(['0.0', '3.0']);
  }
});
