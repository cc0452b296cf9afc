// The other side of Pool, in each of its processes.
import { deserialize, serialize } from 'node:v8';
import { type Store, TcpStore } from '@ringwise/store';
import type { Group } from '../src/index.ts';
import { runScenario, type ScenarioName } from '../src/testing.ts';

/** Runs the scenarios that the test puts into its store, each in a new group, until it puts null. */
export async function serve(
  rank: number,
  port: number,
  makeGroup: (store: Store) => Promise<Group>,
): Promise<void> {
  const control = await TcpStore.connect({ host: '127.0.0.1', port });
  for (let n = 0; ; n++) {
    const command = deserialize(await control.get(`command/${n}`)) as [ScenarioName, unknown[]] | null;
    if (command === null) break;
    const group = await makeGroup(control);
    const outcome = await runScenario(group, ...command);
    await group.close();
    await control.set(`outcome/${n}/${rank}`, serialize(outcome));
  }
  await control.close();
}
