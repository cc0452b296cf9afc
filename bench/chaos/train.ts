// The program whose ranks the chaos bench disturbs: bench/chaos/train.ts FOLDER MODE PARAMETERS WORK_MS. With mode
// `elastic` it goes on in the process when ranks are lost; with `restart` it begins again from a snapshot, which rank
// 0 writes every `snapshotEvery` steps.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Group, init } from '@ringwise/collectives';
import { type Change, joinMembership } from '@ringwise/elastic';
import { transfer } from '../../packages/elastic/src/transfer/transfer.ts';
import { hashOf, openJournal } from './journal.ts';
import { Model, microBatchesPerStep } from './model.ts';

const [folder, mode, parameters, workMs] = process.argv.slice(2) as [string, string, string, string];
const snapshotEvery = 50;
const {
  RANK,
  RINGWISE_SLOT = RANK,
  RINGWISE_INCARNATION,
  TORCHELASTIC_RESTART_COUNT,
  GROUP_RANK,
} = process.env;
const start = RINGWISE_INCARNATION ?? TORCHELASTIC_RESTART_COUNT;
const journal = openJournal(folder, `${RINGWISE_SLOT}.${start}.${process.pid}`);
const host = Number(process.env.CHAOS_HOST ?? GROUP_RANK);
journal({ kind: 'start', pid: process.pid, slot: Number(RINGWISE_SLOT), host });

const model = new Model(Number(parameters));
const bits = () => model.bits(hashOf);

/** Returns the step at which the run ends; the bench says it in a file when it has disturbed enough. */
function lastStep(): number {
  const file = join(folder, 'last-step');
  return existsSync(file) ? Number(readFileSync(file, 'utf8')) : Number.POSITIVE_INFINITY;
}

/** Computes this rank's part of a step and averages the gradients. Collective. */
async function computeStep(group: Group, view: number): Promise<void> {
  const own = model.owned(model.plan(group.size), group.rank, group.size);
  journal({ kind: 'try', step: model.steps, view, batches: own.map(({ index }) => index) });
  const contributions = own.map((batch) => model.gradientOf(batch));
  // Stands for the work of a device, which takes no time of the processor.
  await sleep(own.length * Number(workMs));
  await model.reduce(group, contributions);
}

function finish(size: number, view: number): void {
  const step = model.steps;
  model.apply(model.plan(size));
  journal({ kind: 'final', step, view, bits: bits() });
}

async function trainElastic(): Promise<string> {
  const membership = await joinMembership();
  process.on('SIGTERM', () => membership.leave());
  let change: Change | null = membership.first;
  let hasState = false;
  let isComplete = false;
  let [size, view] = [0, 0];
  const progress = () => ({ finalSteps: model.steps, isComplete, hasState });
  const begin = async ({ view: next, group, decision, joined }: Change) => {
    // The averages were complete: the step is that of the view before.
    if (decision === 'commit' && hasState && model.steps < next.finalSteps) finish(size, view);
    isComplete = false;
    if (joined.length === group.size) hasState = true;
    else if (joined.length > 0) {
      const { bytes } = await transfer(group, joined, {
        save: () => model.save(),
        load: (state) => model.load(state),
      });
      if (!hasState) journal({ kind: 'state', bytes });
      hasState = true;
    }
    [size, view] = [group.size, next.number];
    journal({ kind: 'view', view, size, step: model.steps, bits: bits() });
  };
  for (;;) {
    try {
      if (change !== null) {
        const next = change;
        change = null;
        await begin(next);
      }
      if (model.steps >= lastStep()) break;
      await computeStep(membership.group, view);
      isComplete = true;
      const vote = await membership.vote({ agreed: [model.steps] });
      finish(size, view);
      isComplete = false;
      if (vote.isLeaving) break;
      if (vote.changesView) change = await membership.change(progress());
    } catch (error) {
      if (!membership.isChange(error)) throw error;
      change = await membership.change(progress(), error);
    }
  }
  await membership.close();
  return model.steps >= lastStep() ? 'done' : 'left';
}

async function trainWithRestarts(): Promise<string> {
  await using group = await init({ timeoutMs: 8_000 });
  const snapshot = join(folder, 'snapshot.json');
  if (existsSync(snapshot)) {
    const { weights, velocity, ...rest } = JSON.parse(readFileSync(snapshot, 'utf8')) as Record<
      string,
      string
    >;
    const floats = (text: string) => new Float32Array(new Uint8Array(Buffer.from(text, 'base64')).buffer);
    model.load({ ...rest, weights: floats(weights!), velocity: floats(velocity!) });
  }
  const round = Number(start);
  journal({ kind: 'view', view: round, size: group.size, step: model.steps, bits: bits() });
  while (model.steps < lastStep()) {
    await computeStep(group, round);
    finish(group.size, round);
    if (group.rank !== 0 || model.steps % snapshotEvery !== 0) continue;
    const { weights, velocity, cursor, steps } = model;
    const text = (floats: Float32Array) => Buffer.from(floats.buffer as ArrayBuffer).toString('base64');
    writeFileSync(
      `${snapshot}.part`,
      JSON.stringify({ weights: text(weights), velocity: text(velocity), cursor, steps }),
    );
    renameSync(`${snapshot}.part`, snapshot);
  }
  return 'done';
}

if (microBatchesPerStep < Number(process.env.WORLD_SIZE))
  throw new Error('there are more ranks than micro-batches');
const why = await (mode === 'elastic' ? trainElastic() : trainWithRestarts());
journal({ kind: 'end', why });
process.exit(0);
