// A parameter server: rank 0 holds the parameters, the other ranks are workers that hold the data. In the synchronous
// version each round waits for all workers. In the asynchronous version the server answers each gradient at once with
// the newest parameters, so a slow worker does not delay the others.
//
//   npx ringwise run --nproc-per-node 3 examples/parameter-server.ts
//   npx tsx examples/parameter-server.ts                                  three ranks in one process
//
// Claim: both versions find the line that generated the data, to within 0.01.
import { setTimeout as delay } from 'node:timers/promises';
import { anySource, type Group, init, loopbackGroups } from '@ringwise/collectives';

const line = [2, -1]; // y = 2 + (-1) · x
const rounds = 200;
const learningRate = 0.2;

/** Returns the gradient of the mean squared error at `w`, on the batch of this worker and round. */
function gradient(w: Float32Array, worker: number, round: number): Float32Array {
  const sums = new Float32Array(2);
  const batch = 16;
  for (let i = 0; i < batch; i++) {
    const x = Math.sin(100 * worker + 7 * round + i);
    const error = w[0]! + w[1]! * x - (line[0]! + line[1]! * x);
    sums[0]! += (2 * error) / batch;
    sums[1]! += (2 * error * x) / batch;
  }
  return sums;
}

function step(w: Float32Array, g: Float32Array): void {
  for (const i of w.keys()) w[i]! -= learningRate * g[i]!;
}

async function synchronous(group: Group): Promise<Float32Array> {
  const w = new Float32Array(2);
  const sum = new Float32Array(2);
  for (let round = 0; round < rounds; round++) {
    await group.broadcast(w, { root: 0 });
    if (group.rank > 0) sum.set(gradient(w, group.rank, round));
    else sum.fill(0); // the server has no data and adds nothing to the sum
    await group.reduce(sum, { root: 0 });
    if (group.rank === 0)
      step(
        w,
        sum.map((value) => value / (group.size - 1)),
      );
  }
  return w;
}

async function asynchronous(group: Group): Promise<Float32Array> {
  const w = new Float32Array(2);
  const workers = group.size - 1;
  if (group.rank === 0) {
    const g = new Float32Array(2);
    for (let served = 0; served < rounds * workers; served++) {
      const worker = await group.recv(g, anySource);
      step(w, g);
      await group.send(w, worker);
    }
    return w;
  }
  for (let round = 0; round < rounds; round++) {
    if (group.rank === 1 && round % 50 === 0) await delay(5); // rank 1 plays the slow worker
    await group.send(gradient(w, group.rank, round), 0);
    await group.recv(w, 0);
  }
  return w;
}

async function run(group: Group): Promise<void> {
  for (const [name, train] of Object.entries({ synchronous, asynchronous })) {
    const w = await train(group);
    if (group.rank > 0) continue;
    const difference = Math.max(...line.map((value, i) => Math.abs(value - w[i]!)));
    console.log(
      `${name}: ${group.size - 1} workers found the line to ${difference < 0.01 ? '0.01' : difference}`,
    );
    if (!(difference < 0.01)) throw new Error(`${name}: off by ${difference}`);
  }
  await group.barrier();
}

await using group = await init();
if (group.size > 1) await run(group);
else await Promise.all(loopbackGroups(3).map(run));
