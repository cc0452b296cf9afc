// Runs very many operations, and checks that a rank then holds no more memory and handles than before. Also
// reports whether a call still takes as long.
//
//   npx ringwise run --nproc-per-node 2 bench/soak.ts [--small 1000000] [--large 1000]
//
// Warms up with a tenth of the operations. Rank 0 prints one JSON line: memory, file descriptors, threads and
// handles of every rank before and after, and the microseconds per small operation in the first and in the
// last tenth. The exit code is 1 if something was left behind or a result was wrong.
import { parseArgs } from 'node:util';
import { type Group, init } from '@ringwise/collectives';
import { holdings, jsonLine, named, nothingLeft, ofAllRanks } from './holdings.ts';

const { values } = parseArgs({
  options: { small: { type: 'string', default: '1000000' }, large: { type: 'string', default: '1000' } },
});
const operationsPerRound = 10;
const rounds = Math.ceil(Number(values.small) / operationsPerRound);
const large = Number(values.large);

/**
 * Runs ten small operations per round, half of them synchronous and half of them asynchronous and at once, on
 * kept and on new buffers. Returns how many of the two checks in each round failed.
 */
async function smallOperations(group: Group, rounds: number): Promise<number> {
  const { rank, size } = group;
  const next = (rank + 1) % size;
  const previous = (rank + size - 1) % size;
  const kept = new Float32Array(16);
  const part = new Float32Array(16);
  const all = new Float32Array(16 * size);
  let wrong = 0;
  for (let round = 0; round < rounds; round++) {
    const fresh = new Float64Array(1 + (round % 50)).fill(rank);
    group.allReduceSync(fresh);
    group.allReduceSync(kept.fill(rank), { op: 'max' });
    group.allGatherSync(part.fill(rank), all);
    group.broadcastSync(part, { root: round % size });
    group.barrierSync();
    if (fresh[0] !== (size * (size - 1)) / 2 || kept[15] !== size - 1 || all[16 * next] !== next) wrong++;

    const sent = Int32Array.of(round);
    const received = new Int32Array(1);
    await Promise.all([
      group.allReduce(fresh, { op: 'min' }),
      group.reduceScatter(all, part),
      group.barrier(),
      group.send(sent, next),
      group.recv(received, previous),
    ]);
    if (received[0] !== round) wrong++;
  }
  return wrong;
}

/**
 * Runs all-reduces of 1 MiB and more. Returns the number of wrong results. Uses parts of one buffer, because
 * malloc would keep some megabytes of freed large buffers.
 */
async function largeOperations(group: Group, operations: number): Promise<number> {
  const buffer = new Float32Array((1 << 18) + operations);
  let wrong = 0;
  for (let i = 0; i < operations; i++) {
    const x = buffer.subarray(0, (1 << 18) + i).fill(1);
    if (i % 2) group.allReduceSync(x);
    else await group.allReduce(x);
    if (x[x.length - 1] !== group.size) wrong++;
  }
  return wrong;
}

await using group = await init();
let wrong = await smallOperations(group, rounds / 10);
wrong += await largeOperations(group, large / 10);
const before = await holdings();

const usPerOperation: number[] = [];
for (let tenth = 0; tenth < 10; tenth++) {
  const start = performance.now();
  wrong += await smallOperations(group, rounds / 10);
  usPerOperation.push(((performance.now() - start) * 1000) / (rounds * operationsPerRound * 0.1));
}
wrong += await largeOperations(group, large);
const after = await holdings();

const table = { before: await ofAllRanks(group, before), after: await ofAllRanks(group, after) };
const allWrong = (await ofAllRanks(group, Float64Array.of(wrong))).flat().reduce((a, b) => a + b);
const ok = nothingLeft(table.before, table.after) && allWrong === 0;
if (group.rank === 0) {
  const line = {
    bench: 'soak',
    ranks: group.size,
    small: rounds * operationsPerRound,
    large,
    before: table.before.map(named),
    after: table.after.map(named),
    firstUs: usPerOperation[0],
    lastUs: usPerOperation[9],
    wrong: allWrong,
    ok,
  };
  console.log(jsonLine(line));
}
if (!ok) process.exitCode = 1;
