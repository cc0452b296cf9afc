// One rank collects what all have: numbers in a list of buffers, or any values as objects. The others get nothing,
// and pass null where the root passes its output.
//
//   npx ringwise run --standalone --nproc-per-node 4 examples/gather.ts
//
// Claim: only the root has the result, in rank order. Every backend can do it.
import { init } from '@ringwise/collectives';

await using group = await init();
const { rank, size } = group;
const root = size - 1;
const isRoot = rank === root;

const squares = Float64Array.of(rank, rank ** 2);
const table = isRoot ? Array.from({ length: size }, () => new Float64Array(2)) : null; // or one buffer of 2 * size
await group.gather(squares, table, { root });

const reports = await group.gatherObject({ rank, pid: process.pid, node: process.version }, { root });

// Back again: the root gives each rank its part.
const part = new Float64Array(2);
await group.scatter(table, part, { root });

console.log(`rank ${rank}: table ${table ?? 'null'}, ${reports?.length ?? 'no'} reports`);

const expected = Array.from({ length: size }, (_, other) => [other, other ** 2]).flat();
const isRight = isRoot
  ? table?.join() === expected.join() && reports?.every((report, other) => report.rank === other) === true
  : table === null && reports === null;
if (!isRight || part.join() !== squares.join()) throw new Error(`expected ${expected} on rank ${root} only`);
