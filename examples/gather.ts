// One rank, the root, collects the data of all ranks: numbers into a list of buffers, and any JavaScript values as
// objects. The other ranks get no result and pass null as the output.
//
//   npx ringwise run --standalone --nproc-per-node 4 examples/gather.ts
//
// Claim: only the root has the result, in rank order. Every backend supports these calls.
import { init } from '@ringwise/collectives';
import { readOptions } from './options.ts';

readOptions(import.meta.url, {}); // refuses options, and knows --help
await using group = await init();
const { rank, size } = group;
const root = size - 1;
const isRoot = rank === root;

const squares = Float64Array.of(rank, rank ** 2);
const table = isRoot ? Array.from({ length: size }, () => new Float64Array(2)) : null; // or one buffer of 2 * size
await group.gather(squares, table, { root });

const reports = await group.gatherObject({ rank, pid: process.pid, node: process.version }, { root });

// The other direction: the root sends each rank its part of the table.
const part = new Float64Array(2);
await group.scatter(table, part, { root });

console.log(`rank ${rank}: table ${table ?? 'null'}, ${reports?.length ?? 'no'} reports`);

const expected = Array.from({ length: size }, (_, other) => [other, other ** 2]).flat();
const isRight = isRoot
  ? table?.join() === expected.join() && reports?.every((report, other) => report.rank === other) === true
  : table === null && reports === null;
if (!isRight || part.join() !== squares.join()) throw new Error(`expected ${expected} on rank ${root} only`);
