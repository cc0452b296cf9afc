// Functions that the processes of device-elastic.test.ts run: an elastic job whose parameters, gradients and momentum
// lie on CUDA devices: two, or one GPU for all.
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { elastic } from '@ringwise/elastic';
import { crossEntropy, type DeviceName, fromHost, manualSeed, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { deviceMemoryAddon, openStore, testDeviceOf, useTestDevice } from '@ringwise/testing';

const [features, classes, samples, globalBatch, microBatch] = [12, 4, 72, 12, 2];
/** Steps of an epoch, which a job trains that no process joins. */
export const steps = samples / globalBatch;

export interface Plan {
  readonly backend: string;
  readonly size: number;
  /** The process that is killed, and the step in whose forward it is. */
  readonly victim?: number;
  readonly at?: number;
  /** The process whose NCCL fails from step `at` on. */
  readonly broken?: number;
  /** The process whose NCCL ends no call from step `at` on. */
  readonly stalled?: number;
  /** Deadline of collectives, in ms, if it is not the default. */
  readonly timeoutMs?: number;
  /** Default 500. */
  readonly settleMs?: number;
  /** The process that joins when the others have taken a step. They train on until it has taken four. */
  readonly joiner?: number;
}

export interface Trained {
  readonly state: Float32Array;
  readonly sizes: readonly number[];
  readonly finalSteps: number;
  readonly device: string;
  readonly backend: string;
}

const sampleOf = (index: number) => ({
  x: Float32Array.from({ length: features }, (_, i) => Math.sin(1 + 3 * index + 1.3 * i)),
  label: (index * 7) % classes,
});

/** Returns the device of a process. The software has two, so the third process shares that of the first. */
export const deviceOf = (process_: number): DeviceName => `cuda:${testDeviceOf(process_ % 2)}`;

interface Faults {
  readonly breakNccl: () => void;
  readonly stallNccl: (stalls: boolean) => void;
}

/** Returns what makes the software NCCL of this process fail. */
const faults = () => createRequire(import.meta.url)(deviceMemoryAddon) as Faults;

/** Trains on the device of the process; without `plan`, `alone` steps by itself on the CPU. */
export async function train(process_: number, plan: Plan | null, alone = steps): Promise<Trained> {
  const device: DeviceName = plan === null ? 'cpu' : deviceOf(process_);
  if (plan !== null) {
    useTestDevice();
    process.env.RINGWISE_SLOT = String(process_);
    process.env.RINGWISE_INCARNATION = '0';
  }
  const store = plan === null ? null : await openStore();
  await using _ = { [Symbol.asyncDispose]: async () => await store?.close() };
  if (plan?.joiner === process_) await store?.wait(['a step is final']);
  const { size, backend: wanted, settleMs = 500, timeoutMs } = plan ?? {};
  const options =
    plan === null ? {} : { size, backend: wanted, settleMs, ...(timeoutMs !== undefined && { timeoutMs }) };
  await using job = await elastic(options);
  const sizes: number[] = [];
  let last = plan === null ? alone : plan.joiner === undefined ? steps : Number.POSITIVE_INFINITY;
  job.onView(({ size, step }) => {
    sizes.push(size);
    if (plan?.joiner !== undefined && size > plan.size) last = step + 4;
  });
  manualSeed(1 + process_); // all get the values of the first member
  const net = new Sequential(new Linear(features, 16), new ReLU(), new Linear(16, classes)).to(device);
  const optimizer = new SGD(net.parameters(), { lr: 0.1, momentum: 0.9 });
  const data = Array.from({ length: samples }, (_, index) => sampleOf(index));
  const loader = job.loader(data, { globalBatch, microBatch, shuffle: false });
  const model = await job.ddp(net, { optimizer, loader });
  const { backend } = job.group;
  for await (const { run, number } of job.steps(loader, { epochs: 1_000 })) {
    if (last === Number.POSITIVE_INFINITY) await sleep(20); // so that there are not many steps before a process joins
    await run((batch) => {
      if (plan?.victim === process_ && plan.at === number) process.kill(process.pid, 'SIGKILL');
      if (plan?.broken === process_ && plan.at === number) faults().breakNccl();
      if (plan?.stalled === process_ && plan.at === number) faults().stallNccl(true);
      return scope(() => {
        const x = fromHost(batch.x.data, batch.x.shape).to(device);
        const loss = crossEntropy(model.forward(x), fromHost(Int32Array.from(batch.label.data)).to(device));
        loss.backward();
        return loss.item();
      });
    });
    if (number === 0) await store?.set('a step is final', '');
    if (job.finalSteps === last) break;
  }
  const values = net.parameters().flatMap((each) => Array.from(each.dataSync() as Float32Array));
  const { finalSteps } = job;
  return {
    state: Float32Array.from(values),
    sizes,
    finalSteps,
    device: net.parameters()[0]!.device,
    backend,
  };
}
