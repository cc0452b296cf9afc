// Serves the commands of a Pool in each of its processes.
import type { Store } from '@ringwise/store';
import { serveCommands } from '@ringwise/testing';
import { runScenario, type ScenarioName } from '../../contract/index.ts';
import type { Group } from '../../src/index.ts';

/** Runs scenarios, each in a new group. */
export function serve(
  rank: number,
  port: number,
  makeGroup: (store: Store) => Promise<Group>,
): Promise<void> {
  return serveCommands(rank, port, async (store, scenario: ScenarioName, args: unknown[]) => {
    const group = await makeGroup(store);
    const outcome = await runScenario(group, scenario, args);
    await group.close();
    return outcome;
  });
}
