// Checks the journals of a run: each sample was used once, all ranks had the same bits, and one process that does the
// steps without faults has them, too.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { init } from '@ringwise/collectives';
import { elastic } from '@ringwise/elastic';
import { MemoryStore } from '@ringwise/store';
import { manualSeed } from '@ringwise/tensor';
import { hashOf, type Journal, type Line } from './journal.ts';
import { Model, microBatchesPerStep, samplesPerStep } from './model.ts';
import { datasetOf, lossOf, makeNetwork, microBatch, valuesOf } from './network.ts';

const launcher = fileURLToPath(new URL('../../packages/launch/bin/ringwise.js', import.meta.url));

type Final = Extract<Line, { kind: 'final' }>;

export interface Audit {
  readonly steps: number;
  /** Samples of final steps that no rank used, and that several ranks used. */
  readonly lostSamples: number;
  readonly doubledSamples: number;
  /** Steps and views after which two ranks had different bits. */
  readonly differences: readonly string[];
  /** Steps that were computed and are no part of the training: those in flight, and more after a restart. */
  readonly redoneSteps: number;
  readonly joins: number;
  readonly joinBytes: number;
}

export function audit(journals: readonly Journal[]): Audit {
  const tries = new Map<string, number[]>();
  const finals = new Map<number, Final>();
  const bits = new Map<number, string>();
  const differences: string[] = [];
  let [joins, joinBytes] = [0, 0];
  const note = (step: number, text: string, what: string) => {
    const known = bits.get(step);
    if (known === undefined) bits.set(step, text);
    else if (known !== text) differences.push(what);
  };
  const attempts = new Set<string>();
  for (const { name, lines } of journals) {
    for (const line of lines) {
      if (line.kind === 'try') {
        const key = `${line.step} ${line.view}`;
        attempts.add(key);
        tries.set(key, [...(tries.get(key) ?? []), ...line.batches]);
      } else if (line.kind === 'state') {
        joins++;
        joinBytes += line.bytes;
      } else if (line.kind === 'view') {
        // A rank without the state has random bits, but it writes this line when it has received the state.
        note(line.step, line.bits, `${name} in view ${line.view} at step ${line.step}`);
      } else if (line.kind === 'final') {
        note(line.step + 1, line.bits, `${name} after step ${line.step}`);
        const known = finals.get(line.step);
        if (known === undefined || line.view > known.view) finals.set(line.step, line);
      }
    }
  }
  const steps = Math.max(-1, ...finals.keys()) + 1;
  let [lost, doubled] = [0, 0];
  const perBatch = samplesPerStep / microBatchesPerStep;
  for (let step = 0; step < steps; step++) {
    const final = finals.get(step);
    const used = final === undefined ? [] : tries.get(`${step} ${final.view}`)!;
    for (let batch = 0; batch < microBatchesPerStep; batch++) {
      const times = used.filter((each) => each === batch).length;
      if (times === 0) lost += perBatch;
      if (times > 1) doubled += perBatch * (times - 1);
    }
  }
  const redoneSteps = attempts.size - steps;
  return { steps, lostSamples: lost, doubledSamples: doubled, differences, redoneSteps, joins, joinBytes };
}

/** Returns the bits after `steps` steps that one process does without faults. */
export async function replay(steps: number, parameters: number): Promise<string> {
  await using group = await init();
  const model = new Model(parameters);
  while (model.steps < steps) {
    const plan = model.plan(1);
    const contributions = model.owned(plan, 0, 1).map((batch) => model.gradientOf(batch));
    await model.reduce(group, contributions);
    model.apply(plan);
  }
  return model.bits(hashOf);
}

/**
 * Trains `steps` steps of --program job in one process without faults, and returns how far its parameters are from
 * those that the job has written, relative to the largest one. Sums over other numbers of ranks round in another way.
 */
export async function differenceOfJob(folder: string, steps: number, parameters: number): Promise<number> {
  const trained = new Float32Array(new Uint8Array(readFileSync(join(folder, 'parameters'))).buffer);
  const own = await trainAlone(steps, parameters);
  const largest = trained.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
  return trained.reduce((most, each, i) => Math.max(most, Math.abs(each - own[i]!)), 0) / largest;
}

/**
 * Plays the membership log of --program job by as many processes without faults, on one host, and returns whether they
 * end with the bits that the job has written.
 */
export async function replayJob(folder: string, parameters: number): Promise<boolean> {
  const script = fileURLToPath(new URL('./train-job.ts', import.meta.url));
  const argv = [launcher, 'run', '--nproc-per-node', '4', script, folder, 'replay', `${parameters}`, '0'];
  await promisify(execFile)(process.execPath, argv, { timeout: 600_000 });
  const [trained, own] = ['parameters', 'replayed'].map((name) => readFileSync(join(folder, name)));
  return trained!.equals(own!);
}

async function trainAlone(steps: number, parameters: number): Promise<Float32Array> {
  await using job = await elastic({ store: new MemoryStore(), size: 1, runId: 'replay', leaveOn: null });
  manualSeed(1);
  const { net, optimizer } = makeNetwork(parameters);
  const loader = job.loader(datasetOf(), { globalBatch: samplesPerStep, microBatch, seed: 1 });
  const model = await job.ddp(net, { optimizer, loader });
  for await (const step of job.steps(loader, { epochs: 1_000_000 })) {
    if (step.number === steps) break;
    await step.run((batch) => lossOf(model, batch));
  }
  return valuesOf(net);
}

/** Returns the bits that the ranks had after `steps` steps; null if none has written them. */
export function lastBits(journals: readonly Journal[], steps: number): string | null {
  for (const { lines } of journals) {
    for (const line of lines) if (line.kind === 'final' && line.step === steps - 1) return line.bits;
  }
  return null;
}

/**
 * Returns the part of the work that the living ranks could have done and did: final samples, divided by the samples
 * that they would have trained at the speed without faults, `perRankSecond`. A rank counts from its first line to its
 * last one; `idle` are times during which ranks were stopped or cut off.
 */
export function goodputOf(
  journals: readonly Journal[],
  fromNs: number,
  toNs: number,
  samples: number,
  perRankSecond: number,
  idle: readonly (readonly [number, number, number])[],
): number {
  const within = (from: number, to: number) => Math.max(0, Math.min(to, toNs) - Math.max(from, fromNs)) / 1e9;
  let seconds = 0;
  for (const { lines } of journals) seconds += within(lines[0]!.t, lines.at(-1)!.t);
  for (const [from, to, ranks] of idle) seconds -= ranks * within(from, to);
  return samples / (seconds * perRankSecond);
}
