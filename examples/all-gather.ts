// Every rank contributes a few numbers and gets the numbers of all ranks. Then the ranks print in order.
//
//   npx ringwise run --standalone --nproc-per-node 4 examples/all-gather.ts
//
// Claim: on every rank the parts of all ranks arrive in rank order. That holds for a list of buffers, for one buffer,
// and for parts of different lengths (rank r contributes r + 1 numbers).
import { init } from '@ringwise/collectives';
import { readOptions } from './options.ts';

readOptions(import.meta.url, {}); // refuses options, and knows --help
await using group = await init();
const { rank, size } = group;

// Rank 0 has [1, 2], rank 1 has [3, 4], and so on. The output can be a list with a buffer for each rank …
const mine = Int32Array.of(2 * rank + 1, 2 * rank + 2);
const list = Array.from({ length: size }, () => new Int32Array(2));
await group.allGather(mine, list);

// … or one buffer that is `size` times as long as the input.
const flat = new Int32Array(2 * size);
await group.allGather(mine, flat);

// With `counts`, the ranks' parts may differ in length: here rank r contributes r + 1 numbers.
const counts = Array.from({ length: size }, (_, other) => other + 1);
const uneven = new Int32Array(counts.reduce((sum, count) => sum + count));
await group.allGather(new Int32Array(rank + 1).fill(rank), uneven, { counts });

for (let turn = 0; turn < size; turn++) {
  if (turn === rank)
    console.log(`rank ${rank} has ${list.map((part) => `[${part}]`).join(' ')}, and ${uneven}`);
  await group.barrier();
}

const expected = Array.from({ length: 2 * size }, (_, i) => i + 1).join();
const expectedUneven = counts.flatMap((count, other) => new Array(count).fill(other)).join();
if (flat.join() !== expected || list.join() !== expected || uneven.join() !== expectedUneven)
  throw new Error(`expected ${expected} and ${expectedUneven}, got ${flat} and ${uneven}`);
