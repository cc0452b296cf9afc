// Two ways to sum a vector of K bytes over N ranks, both built from send and recv. With a parameter server, one rank
// receives and sends all data, 2 (N − 1) K bytes in total. In a ring, every rank receives 2 (N − 1) K / N bytes and
// sends as many, which hardly grows with N. The formulas of the time divide these bytes by the bandwidth B.
//
//   npx ringwise run --standalone --nproc-per-node 4 examples/ring-vs-parameter-server.ts
//   … --svg FILE       writes a plot: lines for the formulas, marks for what was measured
//   … --repeats 15     sums of each kind, in turns; the times are their medians
//
// Claim: the busiest rank sends and receives exactly as many bytes as the two formulas say, for 2 … N ranks, N up to 8.
// The times are measured, and not checked: the formulas leave out latency, additions, and that ranks share cores.
import { writeFileSync } from 'node:fs';
import { type Group, init } from '@ringwise/collectives';
import { drawLogPlot } from '../bench/plot/log-plot.ts';
import { readOptions, whole } from './options.ts';

const args = readOptions(import.meta.url, {
  svg: { type: 'string' },
  repeats: { type: 'string', default: '15' },
});
const repeats = whole('--repeats', args.repeats);
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

const ways = [
  { name: 'parameter server', formula: '2 (N−1) K', sum: parameterServer, inK: (n: number) => 2 * (n - 1) },
  { name: 'ring', formula: '2 (N−1) K/N', sum: ring, inK: (n: number) => (2 * (n - 1)) / n },
];

/** Runs `task` on all ranks of `group`, and returns the ms until the last of them has ended. */
async function timeOf(group: Group, task: () => Promise<unknown>): Promise<number> {
  await group.barrier();
  const start = performance.now();
  await task();
  await group.barrier();
  return performance.now() - start;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

/** Sends K bytes from rank 0 to rank 1 several times. Returns the bytes per ms of the median. */
async function bandwidth(group: Group): Promise<number> {
  const x = new Float32Array(count);
  const send = async () => {
    if (group.rank === 0) await group.send(x, 1);
    if (group.rank === 1) await group.recv(x, 0);
  };
  const times: number[] = [];
  for (let i = 0; i < repeats; i++) times.push(await timeOf(group, send));
  return bytes / median(times);
}

/** Runs both ways in turns. Returns for each the bytes that count, of the busiest rank, and the median time in ms. */
async function measure(group: Group): Promise<{ bytes: number; ms: number }[]> {
  const times = ways.map((): number[] => []);
  const moved = ways.map((): Moved => ({ sent: 0, received: 0 }));
  for (let round = 0; round < repeats; round++) {
    for (const [i, { name, sum }] of ways.entries()) {
      const x = new Float32Array(count).fill(group.rank + 1);
      Object.assign(moved[i]!, { sent: 0, received: 0 });
      times[i]!.push(await timeOf(group, () => sum(group, x, moved[i]!)));
      const expected = (group.size * (group.size + 1)) / 2;
      if (x.some((value) => value !== expected)) throw new Error(`${name}: expected ${expected} everywhere`);
    }
  }
  const all = await group.allGatherObject(moved);
  return ways.map(({ sum }, i) => {
    const most = (of: (one: Moved) => number) => Math.max(...all.map((rank) => of(rank[i]!)));
    // The server receives all parts before it sends the sum, so its bytes of both directions add up. In the ring both
    // directions overlap, so the bytes of one direction count.
    const counted = sum === ring ? most(({ sent }) => sent) : most(({ sent, received }) => sent + received);
    return { bytes: counted, ms: median(times[i]!) };
  });
}

/** Draws bytes and times of 2 … N ranks: marks for those measured, lines for the formulas. */
function plotOf(
  rows: readonly { n: number; way: number; bytes: number; ms: number }[],
  bytesPerMs: number,
): string {
  const numbers = Array.from({ length: Math.max(7, ...rows.map(({ n }) => n - 1)) }, (_, i) => i + 2);
  const panel = (of: (row: { bytes: number; ms: number }) => number) =>
    ways.map(({ name, inK }, way) => ({
      name,
      marks: rows.filter((row) => row.way === way).map((row) => ({ x: row.n, y: of(row) })),
      line: numbers.map((n) => ({
        x: n,
        y: of({ bytes: inK(n) * bytes, ms: (inK(n) * bytes) / bytesPerMs }),
      })),
    }));
  const title = 'Sum over N ranks: formulas (lines) and measured (marks)';
  return drawLogPlot({
    ...{ title, xLabel: 'ranks N', yLabel: '', xTick: String, yTick: String },
    panels: [
      { title: 'bytes of the busiest rank', yLabel: 'in K', curves: panel((row) => row.bytes / bytes) },
      { title: 'time of a sum', yLabel: 'ms', curves: panel((row) => row.ms) },
    ],
  });
}

await using world = await init();
const log = world.rank === 0 ? console.log : () => {};
if (world.size === 1) log('one rank has nobody to sum with: start at least two');
else {
  const bytesPerMs = await bandwidth(world);
  log(
    `K = ${bytes / 1e6} MB. B = ${(bytesPerMs / 1e6).toFixed(2)} GB/s: K bytes from rank 0 to rank 1, median`,
  );
  log('N  way               bytes of busiest rank  formula  measured    time: bytes / B   measured');
  const rows: { n: number; way: number; bytes: number; ms: number }[] = [];
  for (let n = 2; n <= Math.min(8, world.size); n++) {
    const group = await world.subgroup(Array.from({ length: n }, (_, rank) => rank));
    for (const [i, measured] of group === null ? [] : (await measure(group)).entries()) {
      const { name, formula, inK } = ways[i]!;
      const expected = Math.round(inK(n) * bytes);
      if (measured.bytes !== expected)
        throw new Error(`${name} on ${n} ranks: expected ${expected} bytes, got ${measured.bytes}`);
      rows.push({ n, way: i, ...measured });
      const inBytes = `${inK(n).toFixed(2)} K    ${(measured.bytes / bytes).toFixed(2)} K`;
      const inMs = `${(expected / bytesPerMs).toFixed(2).padStart(8)} ms ${measured.ms.toFixed(2).padStart(8)} ms`;
      log(`${n}  ${name.padEnd(16)}  ${formula.padEnd(21)}   ${inBytes}        ${inMs}`);
    }
    await group?.close();
    await world.barrier();
  }
  if (world.rank === 0 && args.svg) {
    writeFileSync(args.svg, plotOf(rows, bytesPerMs));
    log(`plot: ${args.svg}`);
  }
}
