// Runs many simulated schedules of faults, or the exhaustive search, and prints what happened.
//
//   npx tsx packages/elastic/bench/membership.ts --schedules 10000 [--members 3-8] [--hosts 1] [--faults 4] [--seed 0]
//   npx tsx packages/elastic/bench/membership.ts --exhaustive [--faults 2] [--states 1000000]
import { parseArgs } from 'node:util';
import { explore } from '../test/support/simulation/explore.ts';
import { runSchedule } from '../test/support/simulation/run.ts';

const { values } = parseArgs({
  options: {
    schedules: { type: 'string', default: '10000' },
    members: { type: 'string', default: '3-8' },
    hosts: { type: 'string', default: '1' },
    faults: { type: 'string' },
    seed: { type: 'string', default: '0' },
    exhaustive: { type: 'boolean', default: false },
    states: { type: 'string', default: '1000000' },
  },
});

const began = performance.now();
if (values.exhaustive) {
  const found = explore({ mostStates: Number(values.states), mostFaults: Number(values.faults ?? 2) });
  console.log(
    `${found.states} states, ${found.ends} ends, ${found.isComplete ? 'all' : 'not all'} interleavings`,
  );
} else runSchedules();
console.log(`${((performance.now() - began) / 1_000).toFixed(1)} s`);

function runSchedules(): void {
  const [fewest = 3, most = fewest] = values.members.split('-').map(Number);
  const statuses = new Map<string, number>();
  const changesMs: number[] = [];
  let [failed, views, operations, events] = [0, 0, 0, 0];
  const first = Number(values.seed);
  for (let seed = first; seed < first + Number(values.schedules); seed++) {
    try {
      const scale = { fewest, most, faults: Number(values.faults ?? 4), hosts: Number(values.hosts) };
      const outcome = runSchedule(seed, scale);
      for (const status of outcome.statuses) statuses.set(status, (statuses.get(status) ?? 0) + 1);
      for (const ms of outcome.changesMs) changesMs.push(ms);
      views += outcome.views;
      operations += outcome.operations;
      events += outcome.events;
    } catch (error) {
      failed++;
      console.log(`RINGWISE_SEED=${seed}: ${(error as Error).message}`);
    }
  }
  changesMs.sort((a, b) => a - b);
  const at = (share: number) => changesMs[Math.floor(share * (changesMs.length - 1))]?.toFixed(1);
  console.log(`${values.schedules} schedules, ${failed} broke an invariant`);
  console.log(`members: ${[...statuses].map(([status, count]) => `${count} ${status}`).join(', ')}`);
  console.log(`${views} views, ${operations} operations of the store, ${events} events`);
  console.log(`change of a view, simulated: median ${at(0.5)} ms, p99 ${at(0.99)} ms`);
  process.exitCode = failed > 0 ? 1 : 0;
}
