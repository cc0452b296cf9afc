// The contract suite that every backend must pass; its promises are at the top of src/backend.ts. A backend's
// test file provides a function that runs a scenario on `size` ranks, and a list of deviations with reasons.

import type { TestApi } from './api.ts';
import type { Outcome } from './outcome.ts';
import type { ScenarioName } from './scenarios/index.ts';
import { contract, type Run } from './tests.ts';

export type { Outcome, PlainError } from './outcome.ts';
export { runScenario, type ScenarioName, scenarios } from './scenarios/index.ts';
export { blockingTests } from './tests.ts';

/** What backendContract() has to know of a backend. */
export interface BackendUnderTest {
  /**
   * Makes a group of `size` ranks, calls runScenario() on each, closes the groups, and returns the outcomes
   * in rank order. Must start the scenarios of all ranks before it waits for one.
   */
  readonly run: (size: number, scenario: ScenarioName, args: readonly unknown[]) => Promise<Outcome[]>;
  /** Group sizes to test. Default: 1, 2, 3 and 4. */
  readonly sizes?: readonly number[];
  /** Tests to skip, by their names without the size. They are reported as skipped, with the reason. */
  readonly skip?: readonly { readonly reason: string; readonly tests: readonly string[] }[];
}

/** Defines the suite. Throws if `skip` names a test that does not exist. */
export function backendContract(api: TestApi, name: string, backend: BackendUnderTest): void {
  const { run, sizes = [1, 2, 3, 4], skip = [] } = backend;
  const reasons = new Map(skip.flatMap(({ reason, tests }) => tests.map((test) => [test, reason] as const)));
  const unknown = [...reasons.keys()].filter((test) => !contract.some((known) => known.name === test));
  if (unknown.length > 0) throw new Error(`backendContract: no test named ${unknown.join(', ')} to skip.`);
  api.describe(`the ${name} backend`, () => {
    for (const size of sizes) {
      api.describe(`with size ${size}`, () => {
        for (const test of contract) {
          if (size < test.from) continue;
          const runHere: Run = (scenario, ...args) => run(size, scenario, args);
          const reason = reasons.get(test.name);
          if (reason === undefined) api.it(test.name, () => test.body(runHere, size, api.expect));
          else api.it.skip(`${test.name} (${reason})`, () => test.body(runHere, size, api.expect));
        }
      });
    }
  });
}
