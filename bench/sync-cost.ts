// Measures the Sync form of every verb on small buffers, where nearly all of a call's time is not spent on data. Prints
// a JSON line for each verb, with the median of the slowest rank in ns. The verbs take turns in short batches, so that
// other programs on the machine disturb all of them alike. --help lists the options.
//
//   npx ringwise run --nproc-per-node 2 bench/sync-cost.ts
import { parseArgs } from 'node:util';
import { type Group, init } from '@ringwise/collectives';

const help = `npx ringwise run --nproc-per-node 2 bench/sync-cost.ts [options]

  --bytes BYTES   of each rank's part (16)
  --rounds R      turns of every verb (300)
  --calls C       calls in a turn (100)
  --only A,B      verbs (all)
  --alloc         buffers from group.alloc()`;

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    bytes: { type: 'string', default: '16' },
    rounds: { type: 'string', default: '300' },
    calls: { type: 'string', default: '100' },
    only: { type: 'string', default: '' },
    alloc: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(help);
  process.exit(0);
}
const [bytes, rounds, calls] = [values.bytes, values.rounds, values.calls].map(Number) as [
  number,
  number,
  number,
];
const only = values.only.split(',').filter((name) => name !== '');

await using group = await init();
const count = Math.max(1, bytes / 4);
const bufferOf = (elements: number): Float32Array =>
  values.alloc ? group.alloc(elements) : new Float32Array(elements);
const [part, other] = [bufferOf(count), bufferOf(count)];
const [whole, second] = [bufferOf(count * group.size), bufferOf(count * group.size)];
const rooted = { root: 0 };
const isRoot = group.rank === 0;

const verbs: Readonly<Record<string, (group: Group) => void>> = {
  barrier: (group) => group.barrierSync(),
  broadcast: (group) => group.broadcastSync(part, rooted),
  reduce: (group) => group.reduceSync(part, rooted),
  allReduce: (group) => group.allReduceSync(part),
  allGather: (group) => group.allGatherSync(part, whole),
  gather: (group) => group.gatherSync(part, isRoot ? whole : null, rooted),
  scatter: (group) => group.scatterSync(isRoot ? whole : null, other, rooted),
  reduceScatter: (group) => group.reduceScatterSync(whole, part),
  allToAll: (group) => group.allToAllSync(whole, second),
};
const chosen = Object.entries(verbs).filter(([name]) => only.length === 0 || only.includes(name));

const times = chosen.map(() => new Float64Array(rounds));
const warmUp = Math.ceil(rounds / 3);
for (let round = -warmUp; round < rounds; round++) {
  for (const [index, [, call]] of chosen.entries()) {
    group.barrierSync();
    const start = performance.now();
    for (let i = 0; i < calls; i++) call(group);
    if (round >= 0) times[index]![round] = ((performance.now() - start) * 1e6) / calls;
  }
}
for (const [index, [verb]] of chosen.entries()) {
  group.allReduceSync(times[index]!, { op: 'max' });
  const sorted = times[index]!.toSorted();
  const [ns, least] = [sorted[rounds >> 1]!, sorted[Math.floor(rounds / 10)]!].map(Math.round);
  if (isRoot) console.log(JSON.stringify({ verb, ns, tenthNs: least }));
}
