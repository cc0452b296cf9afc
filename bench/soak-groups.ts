// Makes and closes very many groups, and checks that a rank then holds no more memory and handles than
// before.
//
//   npx ringwise run --nproc-per-node 2 bench/soak-groups.ts [--inits 5000] [--subgroups 5000]
//
// Warms up with a tenth of the groups, at least 100 of each kind. Rank 0 prints one JSON line: memory, file
// descriptors, threads and handles of every rank before and after, and milliseconds per group. The exit code
// is 1 if something was left behind or a result was wrong.
import { parseArgs } from 'node:util';
import { type Group, init } from '@ringwise/collectives';
import { holdings, jsonLine, named, nothingLeft, ofAllRanks } from './holdings.ts';

const { values } = parseArgs({
  options: { inits: { type: 'string', default: '5000' }, subgroups: { type: 'string', default: '5000' } },
});
const inits = Number(values.inits);
const subgroups = Number(values.subgroups);

/** Runs an all-reduce on the group. Returns 0 if the sum is right, 1 otherwise. */
async function isWrong(group: Group): Promise<number> {
  const ones = new Float32Array(4).fill(1);
  await group.allReduce(ones);
  return ones[3] === group.size ? 0 : 1;
}

async function makeInits(count: number): Promise<number> {
  let wrong = 0;
  for (let i = 0; i < count; i++) {
    const group = await init();
    wrong += await isWrong(group);
    await group.close();
  }
  return wrong;
}

async function makeSubgroups(world: Group, count: number): Promise<number> {
  const ranks = Array.from({ length: world.size }, (_, rank) => rank);
  let wrong = 0;
  for (let i = 0; i < count; i++) {
    const group = i % 2 ? await world.subgroup(ranks) : await world.split(0);
    wrong += await isWrong(group!);
    await group!.close();
  }
  return wrong;
}

await using world = await init({ name: 'soak' });
let wrong = await makeInits(Math.max(100, inits / 10));
wrong += await makeSubgroups(world, Math.max(100, subgroups / 10));
const before = await holdings();

const startMs = performance.now();
wrong += await makeInits(inits);
const middleMs = performance.now();
wrong += await makeSubgroups(world, subgroups);
const endMs = performance.now();
const after = await holdings();

const table = { before: await ofAllRanks(world, before), after: await ofAllRanks(world, after) };
const allWrong = (await ofAllRanks(world, Float64Array.of(wrong))).flat().reduce((a, b) => a + b);
const ok = nothingLeft(table.before, table.after) && allWrong === 0;
if (world.rank === 0) {
  const line = {
    bench: 'soak-groups',
    ranks: world.size,
    ...{ inits, subgroups },
    before: table.before.map(named),
    after: table.after.map(named),
    initMs: (middleMs - startMs) / inits,
    subgroupMs: (endMs - middleMs) / subgroups,
    wrong: allWrong,
    ok,
  };
  console.log(jsonLine(line));
}
if (!ok) process.exitCode = 1;
