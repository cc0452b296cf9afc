// Gathers many small buffers in three ways: with one call for each buffer; joined by hand into one large buffer, which
// is cut into parts again afterwards; and with one call that takes all buffers and joins them itself.
//
//   npx ringwise run --standalone --nproc-per-node 2 examples/coalesced.ts
//
// Claim: all three ways give the same results. The first takes 200 operations, the other two take one.
import { init } from '@ringwise/collectives';

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

const lines: string[] = [];
const used: number[] = [];
for (const gather of [oneByOne, joinedByHand, inOneCall]) {
  const outputs = makeOutputs();
  for (let warmUp = 0; warmUp < 20; warmUp++) await gather(outputs);
  for (const output of outputs) output.fill(-1);
  const before = await operations();
  const start = performance.now();
  await gather(outputs);
  const us = Math.round(1000 * (performance.now() - start));
  used.push((await operations()) - before - 1);
  lines.push(
    `${gather.name.padEnd(12)} ${String(used.at(-1)).padStart(3)} operations ${String(us).padStart(6)} µs`,
  );
  for (const [i, output] of outputs.entries()) {
    const wrong = output.findIndex((x, at) => x !== 1000 * Math.floor(at / lengths[i]!) + i);
    if (wrong >= 0) throw new Error(`${gather.name}: element ${wrong} of buffer ${i} is ${output[wrong]}`);
  }
}

// The ranks print in order: each waits for its turn.
for (let turn = 0; turn < size; turn++) {
  if (turn === rank) console.log([`rank ${rank}`, ...lines].join('\n  '));
  await group.barrier();
}
if (used.join() !== '200,1,1') throw new Error(`expected 200, 1 and 1 operations, got ${used}`);
