// Adds an array over all ranks. Each rank is a process that runs this file.
import { init } from '@ringwise/collectives';

const group = await init(); // rank and size come from the launcher; alone, a group of one
const values = Float32Array.of(1, group.rank);
await group.allReduce(values); // every rank gets the sum
console.log(`rank ${group.rank} of ${group.size}: ${values.join(' and ')}`);
await group.close();
