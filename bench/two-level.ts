// Compares the exchange of all ranks of a host with one in two levels: blocks of ranks reduce to their first rank, the
// first ranks reduce among each other, and each passes the result on in its block. Both take turns on the same ranks.
//
//   npx ringwise run --nproc-per-node 16 bench/two-level.ts [--block 4] [--bytes 64,4096,65536,1048576] [--rounds 9]
import { parseArgs } from 'node:util';
import { init } from '@ringwise/collectives';
import { median } from './median.ts';

const { values } = parseArgs({
  options: {
    block: { type: 'string', default: '4' },
    bytes: { type: 'string', default: '64,4096,65536,1048576' },
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '0.2' },
  },
});
const block = Number(values.block);

await using group = await init();
const { rank, size } = group;
if (!Number.isInteger(size / block) || size === block)
  throw new Error(`two-level: --block is ${block}; expected a divisor of the ${size} ranks, and less.`);
const inside = await group.split(Math.floor(rank / block));
const leaders = await group.split(rank % block === 0 ? 0 : null);

const flat = (x: Float32Array): void => group.allReduceSync(x);
function twoLevel(x: Float32Array): void {
  inside!.reduceSync(x, { root: 0 });
  leaders?.allReduceSync(x);
  inside!.broadcastSync(x, { root: 0 });
}

/** Returns the mean time of a call in µs, on the slowest rank. */
async function timed(call: (x: Float32Array) => void, x: Float32Array, calls: number): Promise<number> {
  group.barrierSync();
  const began = performance.now();
  for (let i = 0; i < calls; i++) call(x);
  const us = Float64Array.of(((performance.now() - began) * 1000) / calls);
  group.allReduceSync(us, { op: 'max' });
  return us[0]!;
}

for (const bytes of values.bytes.split(',').map(Number)) {
  const x = new Float32Array(bytes / 4);
  for (const call of [flat, twoLevel]) {
    x.fill(1);
    call(x);
    if (x.some((value) => value !== size)) throw new Error(`two-level: a wrong sum of ${bytes} bytes`);
  }
  x.fill(0);
  const calls = Math.max(3, Math.ceil((Number(values.seconds) * 1e6) / (await timed(flat, x, 3))));
  const [one, two, ratios]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < Number(values.rounds); round++) {
    // They change places, so that none is always the first.
    const first = round % 2 === 0;
    const a = await timed(first ? flat : twoLevel, x, calls);
    const b = await timed(first ? twoLevel : flat, x, calls);
    const [flatUs, twoUs] = first ? [a, b] : [b, a];
    one.push(flatUs);
    two.push(twoUs);
    ratios.push(twoUs / flatUs);
  }
  if (rank === 0)
    console.log(
      `${size} ranks in blocks of ${block}, ${bytes} bytes: all at once ${median(one).toFixed(1)} us, ` +
        `two levels ${median(two).toFixed(1)} us, ratio ${median(ratios).toFixed(2)}`,
    );
}
