// One process of bench/learners.ts: the store of the job, a member, or the process that joins. Prints JSON lines.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { elastic, type ViewChange } from '@ringwise/elastic';
import { serveStore, TcpStore } from '@ringwise/store';
import { fromHost, manualSeed, mseLoss, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';

export interface Task {
  readonly role: 'store' | 'member' | 'learner';
  readonly members: number;
  readonly layers: number;
  readonly width: number;
  readonly globalBatch: number;
  /** The process joins after this many steps, and the job ends this many steps after that. */
  readonly steps: number;
  readonly learn: boolean;
  readonly secret: string;
}

/** What a member or the process that joined prints at the end. */
export interface Result {
  /** End of each step, in milliseconds since the epoch. */
  readonly endedAtMs: readonly number[];
  /** Processor time that this process had used then, in milliseconds. */
  readonly endedCpuMs: readonly number[];
  /** The view with which the process joined, and when the training went on in it. */
  readonly joined: (ViewChange & { readonly atMs: number; readonly cpuMs: number }) | null;
  readonly hash: string;
  /** Bytes that have come to the host of this process since the epoch's millisecond that is named first. */
  readonly received: readonly (readonly [atMs: number, bytes: number])[];
}

const task = JSON.parse(process.argv[2]!) as Task;
const now = () => performance.timeOrigin + performance.now();
const cpu = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};
const print = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
const port = Number(process.env.MASTER_PORT);

if (task.role === 'store') {
  const server = await serveStore({ host: '0.0.0.0', port, secret: task.secret });
  print('ready');
  process.once('SIGTERM', () => void server.close());
} else await train();

async function train(): Promise<void> {
  const { members, layers, width, globalBatch, steps, learn, secret, role } = task;
  const store = await TcpStore.connect({ host: process.env.MASTER_ADDR!, port, secret });
  const isLearner = role === 'learner';
  const received: [number, number][] = [];
  const sampling = new AbortController();
  if (isLearner) {
    await store.wait(['begin learning'], { timeoutMs: 600_000 });
    void sample(received, sampling.signal);
  }
  const job = await elastic({ store, runId: 'bench', size: members, learn });
  manualSeed(1);
  const blocks = Array.from({ length: layers }, () => [new Linear(width, width), new ReLU()]);
  const net = new Sequential(...blocks.flat(), new Linear(width, 1));
  const optimizer = new SGD(net.parameters(), { lr: 1e-4, momentum: 0.9 });
  const get = (index: number) => ({
    x: Float32Array.from({ length: width }, (_, i) => Math.sin(index + 1.3 * i)),
    y: Float32Array.of(Math.cos(index)),
  });
  const loader = job.loader({ length: 100 * globalBatch, get }, { globalBatch, microBatch: globalBatch / 8 });
  let joined: Result['joined'] = null;
  job.onView((change) => {
    if (change.was > 0 || isLearner) joined = { ...change, atMs: now(), cpuMs: cpu() };
  });
  const model = await job.ddp(net, { optimizer, loader });
  const endedAtMs: number[] = [];
  const endedCpuMs: number[] = [];
  for await (const step of job.steps(loader, { epochs: 1_000 })) {
    await step.run(
      ({ x, y }) =>
        scope(() => {
          const loss = mseLoss(model.forward(fromHost(x.data, x.shape)), fromHost(y.data, y.shape));
          loss.backward();
          return loss.item();
        }),
      {
        beforeUpdate: () => {
          endedAtMs.push(now());
          endedCpuMs.push(cpu());
        },
      },
    );
    if (job.finalSteps === steps && job.leader) await store.set('begin learning', 'now');
    if (joined !== null && job.finalSteps === (joined as ViewChange).step + steps) break;
  }
  sampling.abort();
  const hash = createHash('sha256');
  for (const each of net.parameters()) hash.update(each.dataSync() as Float32Array);
  print({ endedAtMs, endedCpuMs, joined, hash: hash.digest('hex'), received } satisfies Result);
  await job.close();
  await store.close();
}

/** Notes the bytes that come to this host, if it has an interface of its own. */
async function sample(received: [number, number][], signal: AbortSignal): Promise<void> {
  try {
    for (;;) {
      const bytes = readFileSync('/sys/class/net/eth0/statistics/rx_bytes', 'utf8');
      received.push([now(), Number(bytes)]);
      await sleep(20, undefined, { signal });
    }
  } catch {
    // One host has no such interface, and the end of the job ends this.
  }
}
