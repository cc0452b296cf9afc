// Race 20: a step that runs again, or a view that no step was made final in, is reported once. The loss of a step, its
// update and a change of the view come to the program once each, and steps do not go back.
import { values } from '@ringwise/testing';
import { expect, it } from 'vitest';
import type { Fault, Point, Trained } from '../../../fixtures/train.ts';
import { planOf, run, steps } from '../../../support/jobs.ts';

it('each final step and each view is told to the program once, in order', async () => {
  const kill = (step: number, at: Point): Fault => ({ step, at, do: 'SIGKILL' });
  const faults = {
    0: kill(1, 'averaged'),
    2: kill(3, 'reduced'),
    3: kill(5, 'voted'),
    4: kill(5, 'entering'),
  };
  const results = await run(6, planOf(6, { faults }));
  const living = results.filter(({ rank }) => faults[rank as keyof typeof faults] === undefined);
  for (const { losses, log } of values<Trained>(living)) {
    expect(losses).toHaveLength(steps);
    const views = log.map(({ view }) => view);
    expect(views).toEqual([...new Set(views)].sort((a, b) => a - b));
    for (const [i, entry] of log.slice(1).entries()) expect(entry.step).toBeGreaterThanOrEqual(log[i]!.step);
  }
  for (const { stdout } of results) {
    const told = (kind: string) =>
      stdout.split('\n').flatMap((line) => (line.startsWith(`${kind} `) ? [Number(line.split(' ')[1])] : []));
    for (const kind of ['final', 'view']) {
      const numbers = told(kind);
      expect(numbers.length).toBeGreaterThan(0);
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    }
  }
});
