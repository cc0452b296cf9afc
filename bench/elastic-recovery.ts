// Measures the time from the end of a process to the end of the next vote of the others: real processes on one host.
// The ranks train for two seconds first, because a process that has just started is busy with compiling.
import { parseArgs } from 'node:util';
import { startRanks } from '@ringwise/testing';
import type { Plan, Trained } from '../packages/elastic/test/fixtures/loop.ts';

const help = `npx tsx bench/elastic-recovery.ts [flags]

  --ranks N   ranks, on this host [4]
  --runs N    runs; each kills at another rank [10]
  --kill N    how many ranks are killed at once [1]
  --help

A step sleeps for 5 ms and sums one number. The time of recovery includes the one step that is done again.
`;

const { values } = parseArgs({
  options: {
    ranks: { type: 'string', default: '4' },
    runs: { type: 'string', default: '10' },
    kill: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  process.stdout.write(help);
  process.exit();
}
const ranks = Number(values.ranks);
const loop = new URL('../packages/elastic/test/fixtures/loop.ts', import.meta.url);
const times: number[] = [];
const noticed: number[] = [];
for (let run = 0; run < Number(values.runs); run++) {
  const faults: Record<number, Plan['faults'][number]> = {};
  for (let index = 0; index < Number(values.kill); index++) {
    faults[(run + index) % ranks] = { step: 300, at: 'before reduce', do: 'SIGKILL' };
  }
  const plan: Plan = { steps: 320, options: { size: ranks }, faults, joins: {}, stepMs: 5 };
  const results = await (await startRanks(ranks, loop, 'train', { args: [plan] })).results;
  const faultAtMs = Math.max(
    ...results.flatMap(({ stdout }) => /fault (\S+)/.exec(stdout)?.[1] ?? []).map(Number),
  );
  const ends = results.flatMap(({ status, value }) => (status === 'ok' ? [value as Trained] : []));
  const voted = Math.max(...ends.flatMap(({ votedAtMs }) => votedAtMs.slice(-1)));
  times.push(voted - faultAtMs);
  noticed.push(voted - faultAtMs - Math.max(...ends.map(({ recoveryMs }) => recoveryMs.at(-1) ?? 0)));
}
const shown = (list: readonly number[]) => {
  const sorted = [...list].sort((a, b) => a - b);
  return `median ${sorted[sorted.length >> 1]!.toFixed(1)} ms, most ${sorted.at(-1)!.toFixed(1)} ms`;
};
console.log(`${ranks} ranks, ${values.kill} killed, ${times.length} runs`);
console.log(`end of the process → end of the next vote: ${shown(times)}`);
console.log(`end of the process → error of the others:  ${shown(noticed)}`);
