// A parameter server: rank 0 holds the parameters, the other ranks are workers that hold the data. In the synchronous
// mode each round waits for all workers. In the asynchronous mode the server answers each gradient at once with the
// newest parameters, so a slow worker does not delay the others; but its gradient is of older parameters.
//
//   npx ringwise run --nproc-per-node 3 examples/parameter-server.ts
//   npx tsx examples/parameter-server.ts                                  three ranks in one process
//   … --seconds 1 --slow-ms 5      time of each mode, and by how much rank 1, which plays a slow machine, takes longer
//
// Both modes train for the same time, on the same problem. The table says what a gradient costs in time and in bytes of
// the server, how many updates old the parameters are that gradients were computed from, and which loss was reached.
// Claim: in both modes the loss falls, after 100 updates below a third of the first one.
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { anySource, type Group, init, loopbackGroups } from '@ringwise/collectives';
import { reportMetrics } from '@ringwise/launch';
import { numberFrom, readOptions } from './options.ts';

const args = readOptions(import.meta.url, {
  seconds: { type: 'string', default: '1' },
  'slow-ms': { type: 'string', default: '5' },
});
const seconds = numberFrom(
  '--seconds',
  args.seconds,
  'a number above 0, at most 3600',
  (n) => n > 0 && n <= 3600,
);
const slowMs = numberFrom(
  '--slow-ms',
  args['slow-ms'],
  'a number of 0 or more, at most 1000',
  (n) => n >= 0 && n <= 1000,
);

// The model: y(x) = Σ wⱼ cos(j x) / (j + 1). Its later parameters are learned slowly.
const width = 16;
const goal = Float32Array.from({ length: width }, (_, j) => (-1) ** j * (1 + j / 4));
const learningRate = 0.2;
const feature = (x: number, j: number) => Math.cos(j * x) / (j + 1);

/** Adds the gradient of the squared error at `x` to `sums`, divided by `batch`. Returns the squared error. */
function addGradient(w: Float32Array, x: number, batch: number, sums: Float32Array): number {
  let error = 0;
  for (let j = 0; j < width; j++) error += (w[j]! - goal[j]!) * feature(x, j);
  for (let j = 0; j < width; j++) sums[j]! += (2 * error * feature(x, j)) / batch;
  return error * error;
}

/** Returns the mean squared error over 200 points. */
function lossOf(w: Float32Array): number {
  const unused = new Float32Array(width);
  let sum = 0;
  for (let i = 0; i < 200; i++) sum += addGradient(w, (i * Math.PI) / 200, 200, unused);
  return sum / 200;
}

// A message holds the parameters or a gradient, and one more number: the version of the parameters, which is how many
// updates they have had. A gradient names the version from which it was computed. Version −1 tells a worker to stop.
const messageBytes = 4 * (width + 1);

/** What a mode costs. Staleness: updates between the parameters of a gradient and the update that it makes. */
interface Cost {
  updates: number;
  gradients: number;
  staleness: number;
  oldest: number;
  moved: number;
  loss: number;
}

/** Applies gradients to the parameters, and keeps the account. */
class Server {
  readonly w = new Float32Array(width + 1);
  readonly cost: Cost = { updates: 0, gradients: 0, staleness: 0, oldest: 0, moved: 0, loss: 0 };
  readonly #end = performance.now() + 1000 * seconds;

  /** Applies the mean of some gradients as one update. */
  update(gradients: readonly Float32Array[]): void {
    for (const g of gradients) {
      const age = this.cost.updates - g[width]!;
      this.cost.staleness += age;
      this.cost.oldest = Math.max(this.cost.oldest, age);
      for (let j = 0; j < width; j++) this.w[j]! -= (learningRate * g[j]!) / gradients.length;
    }
    this.cost.gradients += gradients.length;
    this.cost.moved += 2 * messageBytes * gradients.length; // each gradient is answered with parameters
    this.w[width] = ++this.cost.updates;
    if (this.cost.updates % 20 === 0) reportMetrics({ loss: lossOf(this.w), step: this.cost.updates });
  }

  /** Returns the next answer to a worker: the parameters, or, when the time is over, the word to stop. */
  answer(): Float32Array {
    if (performance.now() < this.#end) return this.w;
    return new Float32Array(width + 1).fill(-1);
  }
}

async function synchronous(group: Group, server: Server): Promise<void> {
  const workers = Array.from({ length: group.size - 1 }, (_, i) => i + 1);
  const gradients = workers.map(() => new Float32Array(width + 1));
  for (let isOver = false; !isOver; ) {
    await group.batch(workers.map((from, i) => ({ recv: gradients[i]!, from })));
    server.update(gradients);
    const answer = server.answer();
    await group.batch(workers.map((to) => ({ send: answer, to })));
    isOver = answer[width] === -1;
  }
}

async function asynchronous(group: Group, server: Server): Promise<void> {
  const gradient = new Float32Array(width + 1);
  for (let training = group.size - 1; training > 0; ) {
    const worker = await group.recv(gradient, anySource);
    server.update([gradient]);
    const answer = server.answer();
    await group.send(answer, worker);
    if (answer[width] === -1) training--;
  }
}

/** Sends gradients and receives parameters, until the server says stop. The same in both modes. */
async function work(group: Group): Promise<void> {
  const w = new Float32Array(width + 1);
  for (let round = 0; w[width] !== -1; round++) {
    // The others yield, so that in one process the clock of rank 1 goes on.
    await (group.rank === 1 && slowMs > 0 ? delay(slowMs) : nextTurn());
    const gradient = new Float32Array(width + 1);
    for (let i = 0; i < 16; i++) addGradient(w, (137 * group.rank + 7 * round + i) % Math.PI, 16, gradient);
    gradient[width] = w[width]!;
    await group.send(gradient, 0);
    await group.recv(w, 0);
  }
}

async function run(group: Group): Promise<void> {
  if (group.rank > 0) {
    for (let mode = 0; mode < 2; mode++) await work(group);
    return await group.barrier();
  }
  const first = lossOf(new Float32Array(width));
  console.log(`${group.size - 1} workers, ${seconds} s for each mode, loss ${first.toFixed(3)} at first`);
  console.log('mode          updates  gradients  ms/gradient  staleness (most)  bytes/gradient  loss');
  const failed: string[] = [];
  for (const serve of [synchronous, asynchronous]) {
    const server = new Server();
    const start = performance.now();
    await serve(group, server);
    const ms = performance.now() - start;
    const { updates, gradients, staleness, oldest, moved } = server.cost;
    const loss = lossOf(server.w);
    console.log(
      [
        ...[serve.name.padEnd(12), String(updates).padStart(8), String(gradients).padStart(10)],
        ...[
          (ms / gradients).toFixed(3).padStart(12),
          `${(staleness / gradients).toFixed(1)} (${oldest})`.padStart(17),
        ],
        ...[(moved / gradients).toFixed(0).padStart(15), loss.toPrecision(2).padStart(6)],
      ].join(' '),
    );
    const expected = updates < 100 ? first : first / 3;
    if (!(loss < expected)) failed.push(`${serve.name}: loss ${loss}, expected less than ${expected}`);
  }
  await group.barrier();
  if (failed.length > 0) throw new Error(failed.join('; '));
}

await using group = await init();
if (group.size > 1) await run(group);
else await Promise.all(loopbackGroups(3).map(run));
