// Gathers many small buffers in three ways: with one call for each buffer; joined by hand into one large buffer, which
// is cut into parts again afterwards; and with one call that takes all buffers and joins them itself.
//
//   npx ringwise run --standalone --nproc-per-node 2 examples/coalesced.ts
//   … --repeats 31      how often each way runs, in turns; the times are medians, as a single one tells little
//
// Claim: all three ways give the same results. The first takes 200 operations, the other two take one.
import { init } from '@ringwise/collectives';
import { readOptions, whole } from './options.ts';

const args = readOptions(import.meta.url, { repeats: { type: 'string', default: '31' } });
const repeats = whole('--repeats', args.repeats);

await using group = await init();
const { rank, size } = group;

// 200 buffers of 1 to 200 floats, as the gradients of a small model could be.
const lengths = Array.from({ length: 200 }, (_, i) => i + 1);
const inputs = lengths.map((length, i) => new Float32Array(length).fill(1000 * rank + i));
const makeOutputs = () => lengths.map((length) => new Float32Array(length * size));

async function oneByOne(outputs: Float32Array[]): Promise<void> {
  const works = inputs.map((input, i) => group.allGather(input, outputs[i]!));
  for (const work of works) await work;
}

async function joinedByHand(outputs: Float32Array[]): Promise<void> {
  const total = lengths.reduce((sum, length) => sum + length);
  const joined = new Float32Array(total);
  const all = new Float32Array(total * size);
  const starts = lengths.map((_, i) => (i * (i + 1)) / 2);
  for (const [i, input] of inputs.entries()) joined.set(input, starts[i]);
  await group.allGather(joined, all);
  for (const [i, length] of lengths.entries()) {
    for (let other = 0; other < size; other++) {
      const from = other * total + starts[i]!;
      outputs[i]!.set(all.subarray(from, from + length), other * length);
    }
  }
}

async function inOneCall(outputs: Float32Array[]): Promise<void> {
  await group.allGather(inputs, outputs);
}

/** Runs a barrier and returns its sequence number: how many operations the group ran before it. */
async function operations(): Promise<number> {
  const work = group.barrier();
  await work;
  return work.seq;
}

const ways = [oneByOne, joinedByHand, inOneCall];
const outputs = ways.map(makeOutputs);
for (let warmUp = 0; warmUp < 20; warmUp++)
  for (const [i, gather] of ways.entries()) await gather(outputs[i]!);

// In turns, so that all three meet the same disturbances.
const times = ways.map((): number[] => []);
const used: number[] = [];
for (let round = 0; round < repeats; round++) {
  for (const [i, gather] of ways.entries()) {
    for (const output of outputs[i]!) output.fill(-1);
    const before = await operations();
    const start = performance.now();
    await gather(outputs[i]!);
    times[i]!.push(1000 * (performance.now() - start));
    used[i] = (await operations()) - before - 1;
  }
}

for (const [i, { name }] of ways.entries()) {
  for (const [buffer, output] of outputs[i]!.entries()) {
    const wrong = output.findIndex((x, at) => x !== 1000 * Math.floor(at / lengths[buffer]!) + buffer);
    if (wrong >= 0) throw new Error(`${name}: element ${wrong} of buffer ${buffer} is ${output[wrong]}`);
  }
}
const lines = ways.map(({ name }, i) => {
  const sorted = times[i]!.toSorted((a, b) => a - b);
  const [least, median, most] = [0, sorted.length >> 1, sorted.length - 1].map((at) =>
    Math.round(sorted[at]!),
  );
  const time = `median ${String(median).padStart(6)} µs of ${repeats} (${least} to ${most})`;
  return `${name.padEnd(12)} ${String(used[i]).padStart(3)} operations  ${time}`;
});

// The ranks print in order: each waits for its turn.
for (let turn = 0; turn < size; turn++) {
  if (turn === rank) console.log([`rank ${rank}`, ...lines].join('\n  '));
  await group.barrier();
}
if (used.join() !== '200,1,1') throw new Error(`expected 200, 1 and 1 operations, got ${used}`);
