// Every rank contributes one number, and all ranks get the sum. Then the ranks print in turn, with a
// barrier after each.
//
//   npx ringwise run --standalone --nproc-per-node 4 examples/all-reduce.ts
//
// With n ranks, rank r contributes r + 1, and every rank checks that it got 1 + 2 + … + n. Without a launcher, n is 1.
import { init } from '@ringwise/collectives';
import { readOptions } from './options.ts';

readOptions(import.meta.url, {}); // refuses options, and knows --help
await using group = await init();

const x = new Float32Array([group.rank + 1]);
await group.allReduce(x, { op: 'sum' }); // in place

for (let rank = 0; rank < group.size; rank++) {
  if (rank === group.rank) console.log(`rank ${rank} of ${group.size} has ${x[0]}`);
  await group.barrier();
}

const expected = (group.size * (group.size + 1)) / 2;
if (x[0] !== expected) throw new Error(`expected the sum ${expected}, got ${x[0]}`);
