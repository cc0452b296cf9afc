// Every order of the messages of three members that do two steps while one of them is killed at any moment. The search
// with two faults of all kinds takes minutes: `npx tsx packages/elastic/bench/membership.ts --exhaustive`.
import { expect, test } from 'vitest';
import { explore } from '../../support/simulation/explore.ts';

test('no interleaving of a kill breaks an invariant', () => {
  const found = explore({ mostStates: 100_000, mostFaults: 1, onlyKills: true });
  expect(found.isComplete).toBe(true);
  expect(found.states).toBeGreaterThan(1_000);
});
