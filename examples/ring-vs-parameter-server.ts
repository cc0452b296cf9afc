// Two ways to sum a vector of K bytes over N ranks, both built from send and recv. With a parameter server, one rank
// receives and sends all data, 2 (N − 1) K bytes in total. In a ring, every rank receives 2 (N − 1) K / N bytes and
// sends as many, which hardly grows with N.
//
//   npx ringwise run --standalone --nproc-per-node 4 examples/ring-vs-parameter-server.ts
//
// Claim: the busiest rank sends and receives exactly as many bytes as the two formulas say, for 2 … N ranks, N up to 8.
import { type Group, init } from '@ringwise/collectives';

const count = 420_000; // elements; divisible by 2, 3, 4, 5, 6, 7 and 8
const bytes = 4 * count;

/** Bytes that this rank has sent and received in one sum. */
interface Moved {
  sent: number;
  received: number;
}

async function parameterServer(group: Group, x: Float32Array, moved: Moved): Promise<void> {
  const workers = Array.from({ length: group.size - 1 }, (_, i) => i + 1);
  if (group.rank === 0) {
    const parts = workers.map(() => new Float32Array(count));
    await group.batch(workers.map((from, i) => ({ recv: parts[i]!, from })));
    for (const part of parts) for (let i = 0; i < count; i++) x[i]! += part[i]!;
    await group.batch(workers.map((to) => ({ send: x, to })));
    moved.received += bytes * workers.length;
    moved.sent += bytes * workers.length;
  } else {
    await group.send(x, 0);
    await group.recv(x, 0);
    moved.sent += bytes;
    moved.received += bytes;
  }
}

/** Sends each part around the ring twice: first to be summed, then to give every rank the sum. */
async function ring(group: Group, x: Float32Array, moved: Moved): Promise<void> {
  const { rank, size } = group;
  const length = count / size;
  const part = (index: number) => {
    const from = ((index + 2 * size) % size) * length;
    return x.subarray(from, from + length);
  };
  const [next, previous] = [(rank + 1) % size, (rank + size - 1) % size];
  const incoming = new Float32Array(length);
  for (let step = 0; step < 2 * (size - 1); step++) {
    const isSumming = step < size - 1;
    const target = part(rank - step - 1);
    const recv = isSumming ? incoming : target;
    await group.batch([
      { send: part(rank - step), to: next },
      { recv, from: previous },
    ]);
    if (isSumming) for (let i = 0; i < length; i++) target[i]! += incoming[i]!;
    moved.sent += 4 * length;
    moved.received += 4 * length;
  }
}

/** Runs five sums. Returns the most bytes that a rank sent, and received, in one sum, and the fastest time in ms. */
async function measure(group: Group, sum: typeof ring): Promise<{ moved: Moved; ms: number }> {
  let ms = Number.POSITIVE_INFINITY;
  const moved: Moved = { sent: 0, received: 0 };
  for (let round = 0; round < 5; round++) {
    const x = new Float32Array(count).fill(group.rank + 1);
    Object.assign(moved, { sent: 0, received: 0 });
    await group.barrier();
    const start = performance.now();
    await sum(group, x, moved);
    await group.barrier();
    ms = Math.min(ms, performance.now() - start);
    const expected = (group.size * (group.size + 1)) / 2;
    if (x.some((value) => value !== expected))
      throw new Error(`${sum.name}: expected ${expected} everywhere`);
  }
  const all = await group.allGatherObject(moved);
  const most = (of: (one: Moved) => number) => Math.max(...all.map(of));
  return { moved: { sent: most((one) => one.sent), received: most((one) => one.received) }, ms };
}

await using world = await init();
if (world.size === 1) console.log('one rank has nobody to sum with: start at least two');
const bar = (value: number) => '█'.repeat(Math.max(1, Math.round((8 * value) / bytes)));
for (let size = 2; size <= world.size; size++) {
  const group = await world.subgroup(Array.from({ length: size }, (_, rank) => rank));
  if (group !== null) {
    const formulas = { parameterServer: 2 * (size - 1) * bytes, ring: (2 * (size - 1) * bytes) / size };
    for (const sum of [parameterServer, ring]) {
      const { moved, ms } = await measure(group, sum);
      // The server receives all parts before it sends the sum, so its bytes of both directions add up. In the ring both
      // directions overlap, so the bytes of one direction count.
      const got = sum === ring ? moved.sent : moved.sent + moved.received;
      const expected = formulas[sum.name as keyof typeof formulas];
      if (got !== expected)
        throw new Error(`${sum.name} on ${size} ranks: expected ${expected} bytes, got ${got}`);
      const text = `N = ${size}  ${sum.name.padEnd(15)} ${(got / bytes).toFixed(2)} K  ${ms.toFixed(2).padStart(6)} ms`;
      if (group.rank === 0) console.log(`${text}  ${bar(got)}`);
    }
    await group.close();
  }
  await world.barrier();
}
