// The program of --program job: a small network with Adam, trained by elastic() and job.steps(). Writes the same
// journal as train.ts. Arguments: FOLDER MODE PARAMETERS WORK_MS. With mode `replay` it plays the membership log of a
// job that has ended, without faults and without a journal.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { elastic } from '@ringwise/elastic';
import { manualSeed } from '@ringwise/tensor';
import { hashOf, openJournal } from './journal.ts';
import { datasetOf, lossOf, makeNetwork, microBatch, samplesPerStep, valuesOf } from './network.ts';

const [folder, mode, parameters, workMs] = process.argv.slice(2) as [string, string, string, string];
const { RINGWISE_SLOT, RINGWISE_INCARNATION, CHAOS_HOST } = process.env;
const isReplay = mode === 'replay';
const journal = isReplay
  ? () => {}
  : openJournal(folder, `${RINGWISE_SLOT}.${RINGWISE_INCARNATION}.${process.pid}`);
journal({ kind: 'start', pid: process.pid, slot: Number(RINGWISE_SLOT), host: Number(CHAOS_HOST) });

const log = join(folder, 'views.log');
await using job = await elastic(isReplay ? { replay: log } : { log });
manualSeed(1);
const { net, optimizer } = makeNetwork(Number(parameters));
const bits = () => hashOf(new Uint8Array(valuesOf(net).buffer));
const loader = job.loader(datasetOf(), { globalBatch: samplesPerStep, microBatch, seed: 1 });
let view = -1;
job.onView((change) => {
  view = change.view;
  journal({ kind: 'view', view, size: change.size, step: change.step, bits: bits() });
});
const model = await job.ddp(net, { optimizer, loader });
if (RINGWISE_INCARNATION !== '0' || view > 0) {
  journal({ kind: 'state', bytes: 3 * valuesOf(net).byteLength }); // parameters and both moments of Adam
}
let why = 'left';
for await (const step of job.steps(loader, { epochs: 1_000_000 })) {
  const file = join(folder, 'last-step');
  if (existsSync(file) && step.number >= Number(readFileSync(file, 'utf8'))) {
    why = 'done';
    if (job.leader) writeFileSync(join(folder, isReplay ? 'replayed' : 'parameters'), valuesOf(net));
    break;
  }
  let tried = view;
  await step.run(async (batch, { index }) => {
    tried = view;
    journal({ kind: 'try', step: step.number, view, batches: [index] });
    // Stands for the work of a device, which takes no time of the processor.
    await sleep(Number(workMs));
    return lossOf(model, batch);
  });
  journal({ kind: 'final', step: step.number, view: tried, bits: bits() });
}
journal({ kind: 'end', why });
await job.close();
process.exit(0);
