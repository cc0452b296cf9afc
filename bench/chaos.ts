// Disturbs a training at random, and measures what that costs: kills, stopped ranks, hosts that leave, launchers that
// are killed, networks that are cut. Lost ranks are started again and join.
//
//   npx tsx bench/chaos.ts --faults 200 --json
//
// See --help. Checks that each sample was used once, that all ranks had the same bits after each step, and that one
// process without faults has these bits at the end.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { randomOf } from '../packages/store/test/support/fuzz.ts';
import { audit, differenceOfJob, goodputOf, lastBits, replay, replayJob } from './chaos/audit.ts';
import {
  type FaultKind,
  faultHelp,
  faultKinds,
  networkKinds,
  planFaults,
  type Struck,
  strike,
} from './chaos/faults.ts';
import { allJournals, Job } from './chaos/job.ts';
import { nowNs } from './chaos/journal.ts';
import { samplesPerStep } from './chaos/model.ts';

const help = `npx tsx bench/chaos.ts [flags]

Trains on two hosts with two ranks each and disturbs it at random.

  --faults N       number of faults [20]
  --seed N         which faults, when, and whom they hit [1]
  --mode MODE      elastic: ranks go on in their processes (ringwise run --elastic); restart: all start again from a
                   snapshot that is written every 50 steps (ringwise run --max-restarts) [elastic]
  --program NAME   loop: a loop of its own on the membership, with reproducible sums, so that a replay has its bits;
                   job: elastic() and job.steps() with Adam [loop]
  --hosts 1|2      2: network namespaces, which need root; 1: both launchers on loopback [2]
  --kinds K,…      ${faultKinds.join(', ')} [all]
  --every S        seconds from one fault to the next [0.5 to 1.5 after all ranks train]
  --parameters N   size of the model [1024]
  --work-ms N      time of one of the 24 micro-batches of a step; a rank sleeps for that long [2]
  --json           only the last line, which is JSON
  --keep           keep the ranks' journals and what the launchers print, and print where they are
  --help

${faultKinds.map((kind) => `  ${kind.padEnd(10)} ${faultHelp[kind]}`).join('\n')}

The last line is JSON:
  ok                 every check passed
  goodput            final samples, divided by those that the living ranks would have trained without faults
  shareOfFull        the same, divided by those of four ranks in the same time
  medianRecoveryMs   from a fault to the end of the first final step that was begun after it; of stop, cut
                     and mute this includes the time for which the others wait. p99RecoveryMs, medianByKind
  lostSamples        samples of final steps that no rank used; doubledSamples: that several ranks used
  redoneSteps        steps that were computed and are no part of the training
  differentBits      steps and views at which two ranks had different bits
  replayEqual        whether a replay without faults has the same bits at the end: by one process; with --program job
                     and --hosts 1 by elastic({ replay }), and null with --hosts 2
  replayDifference   with --program job: how far its parameters are from those of one process, relative to the largest
`;

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    mode: { type: 'string', default: 'elastic' },
    program: { type: 'string', default: 'loop' },
    hosts: { type: 'string', default: '2' },
    kinds: { type: 'string', default: '' },
    every: { type: 'string' },
    parameters: { type: 'string', default: '1024' },
    'work-ms': { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  process.stdout.write(help);
  process.exit(0);
}

const mode = oneOf('--mode', values.mode, ['elastic', 'restart'] as const);
const program = oneOf('--program', values.program, ['loop', 'job'] as const);
if (program === 'job' && mode === 'restart') wrong('--program job has no --mode restart');
const hasNamespaces = oneOf('--hosts', values.hosts, ['1', '2'] as const) === '2';
const possible = faultKinds.filter((kind) => hasNamespaces || !networkKinds.includes(kind));
const kinds: readonly FaultKind[] =
  values.kinds === '' ? possible : values.kinds.split(',').map((kind) => oneOf('--kinds', kind, possible));
const [faults, seed, parameters, workMs] = (['faults', 'seed', 'parameters', 'work-ms'] as const).map(
  (name) => count(`--${name}`, values[name]),
) as [number, number, number, number];

const everyMs = values.every === undefined ? null : 1_000 * count('--every', values.every);

const folder = mkdtempSync(join(tmpdir(), 'ringwise-chaos-'));
const say = (text: string) => {
  if (!values.json) console.error(text);
};
let job: Job | null = null;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    const close = async () => await job?.close();
    void close().finally(() => {
      rmSync(folder, { recursive: true, force: true });
      process.exit(signal === 'SIGINT' ? 130 : 143);
    });
  });
}
try {
  job = new Job({ mode, program, hasNamespaces, folder, parameters, workMs });
  const result = await run(job);
  console.log(JSON.stringify(result));
  if (!result.ok) process.exitCode = 1;
} finally {
  await job?.close();
  if (values.keep) console.error(`journals: ${folder}`);
  else rmSync(folder, { recursive: true });
}

async function run(running: Job) {
  await running.start();
  await running.until('four ranks in training', () => running.training.length === 4);
  // The speed without faults.
  const calmNs = nowNs();
  const calmStep = running.step;
  await running.until('200 steps without faults', () => running.step >= calmStep + 200);
  const fromNs = nowNs();
  const fromStep = running.step;
  const perRankSecond = ((fromStep - calmStep) * samplesPerStep) / 4 / ((fromNs - calmNs) / 1e9);
  say(`without faults: ${Math.round(4 * perRankSecond)} samples/s on 4 ranks`);

  const struck: Struck[] = [];
  const fromMs = performance.now();
  // The first fault comes after half a period, so that the time after the last one is as long as after the others.
  const due = (index: number) => (everyMs === null ? null : fromMs + (index + 0.5) * everyMs);
  for (const [index, fault] of planFaults(faults, kinds, randomOf(seed)).entries()) {
    const each = await strike(running, fault, due(index));
    struck.push(each);
    const took = each.recoveryMs === null ? 'nothing to strike' : `${Math.round(each.recoveryMs)} ms`;
    say(`${index + 1}: ${each.kind}, ${took}; step ${running.step} on ${running.training.length} ranks`);
  }
  const end = due(faults - 0.5);
  if (end !== null) await sleep(Math.max(0, end - performance.now()));
  const toNs = nowNs();
  running.update();
  const toStep = running.step;
  // A launcher that starts again after the job has ended would wait for it.
  await running.until('four ranks at the end', () => running.training.length === 4);
  writeFileSync(join(folder, 'last-step'), `${Math.max(toStep, running.step) + 100}`);
  await running.end();

  const journals = allJournals(folder).filter(({ lines }) => lines.length > 0);
  const { differences, ...checked } = audit(journals);
  for (const difference of differences.slice(0, 10)) console.error(`different bits: ${difference}`);
  const replayed = await replayOf(checked.steps, journals);
  const samples = (toStep - fromStep) * samplesPerStep;
  const goodput = goodputOf(
    journals,
    fromNs,
    toNs,
    samples,
    perRankSecond,
    struck.flatMap(({ idle }) => idle),
  );
  const times = struck.flatMap(({ recoveryMs }) => recoveryMs ?? []).sort((a, b) => a - b);
  const ok =
    replayed.replayEqual !== false &&
    differences.length === 0 &&
    checked.lostSamples === 0 &&
    (mode === 'restart' || checked.doubledSamples === 0);
  return {
    bench: 'chaos',
    ok,
    mode,
    program,
    faults: times.length,
    seed,
    hosts: Number(values.hosts),
    seconds: Math.round((toNs - fromNs) / 1e9),
    goodput: round(goodput, 3),
    shareOfFull: round(samples / (((toNs - fromNs) / 1e9) * 4 * perRankSecond), 3),
    medianRecoveryMs: round(at(times, 0.5), 0),
    p99RecoveryMs: round(at(times, 0.99), 0),
    medianByKind: Object.fromEntries(kinds.map((kind) => [kind, medianOf(struck, kind)])),
    ...checked,
    differentBits: differences.length,
    ...replayed,
    samplesPerSecond: Math.round(4 * perRankSecond),
  };
}

/** Trains without faults, and compares with what the ranks have at the end. */
async function replayOf(
  steps: number,
  journals: ReturnType<typeof allJournals>,
): Promise<{ readonly replayEqual: boolean | null; readonly replayDifference?: number }> {
  if (program === 'loop')
    return { replayEqual: (await replay(steps, parameters)) === lastBits(journals, steps) };
  const replayDifference = await differenceOfJob(folder, steps, parameters);
  // The sums of two hosts round in another way than those of one.
  return { replayEqual: hasNamespaces ? null : await replayJob(folder, parameters), replayDifference };
}

function medianOf(struck: readonly Struck[], kind: FaultKind): number | null {
  const times = struck
    .flatMap((each) => (each.kind === kind ? (each.recoveryMs ?? []) : []))
    .sort((a, b) => a - b);
  return times.length === 0 ? null : round(at(times, 0.5), 0);
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

function oneOf<T extends string>(flag: string, text: string, words: readonly T[]): T {
  const found = words.find((word) => word === text);
  if (found === undefined) wrong(`${flag} expects one of ${words.join(', ')}, got '${text}'`);
  return found;
}

function count(flag: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) wrong(`${flag} expects a whole number, got '${text}'`);
  return Number(text);
}

function wrong(what: string): never {
  console.error(`chaos: ${what}. See --help.`);
  process.exit(2);
}
