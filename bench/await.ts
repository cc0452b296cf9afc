// Compares `await group.allReduce(x)` with allReduceSync(x) on ranks that make the same calls at about the same time.
// Prints a JSON line for each size, with medians in µs and the longest time for which one call of the plain form held
// the event loop.
// --help lists the options.
//
//   npx ringwise run --nproc-per-node 2 bench/await.ts
import { parseArgs } from 'node:util';
import { init } from '@ringwise/collectives';
import { median } from './median.ts';

const help = `npx ringwise run --nproc-per-node 2 bench/await.ts [options]

  --min, --max BYTES   sizes grow by factors of 4 (4, 4194304)
  --seconds S          per form, size and round (0.2)
  --rounds R           the forms take turns (5)
The exit code is 1 if a sum is wrong.`;

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    min: { type: 'string', default: '4' },
    max: { type: 'string', default: `${4 << 20}` },
    seconds: { type: 'string', default: '0.2' },
    rounds: { type: 'string', default: '5' },
  },
});
if (values.help) {
  console.log(help);
  process.exit(0);
}
const [min, max, seconds, rounds] = [values.min, values.max, values.seconds, values.rounds].map(Number) as [
  number,
  number,
  number,
  number,
];

const round = (us: number): number => Number(us.toPrecision(3));

await using group = await init();
// Long enough for the compiler, so that the first size is not slower than the others.
for (let call = 0; call < 20_000; call++) await group.allReduce(new Float32Array(1));
for (let bytes = min; bytes <= max; bytes *= 4) {
  const data = new Float32Array(Math.max(1, bytes / 4));
  // Every rank makes the same number of calls, so rank 0's first times decide.
  const trial = performance.now();
  for (let call = 0; call < 20; call++) await group.allReduce(data);
  const calls = Int32Array.of(Math.max(20, (20 * seconds * 1000) / (performance.now() - trial)));
  await group.broadcast(calls);
  const count = calls[0] as number;
  const sync: number[] = [];
  const plain: number[] = [];
  let heldUs = 0;
  for (let turn = 0; turn < rounds; turn++) {
    group.barrierSync();
    for (let call = 0; call < count; call++) {
      const start = performance.now();
      group.allReduceSync(data);
      sync.push(performance.now() - start);
    }
    group.barrierSync();
    for (let call = 0; call < count; call++) {
      const start = performance.now();
      const work = group.allReduce(data).then(() => {});
      heldUs = Math.max(heldUs, 1000 * (performance.now() - start));
      await work;
      plain.push(performance.now() - start);
    }
  }
  data.fill(group.rank + 1);
  await group.allReduce(data);
  const isRight = data.every((value) => value === (group.size * (group.size + 1)) / 2);
  const [syncUs, awaitUs] = [1000 * median(sync), 1000 * median(plain)];
  if (group.rank === 0) {
    const times = { sync: round(syncUs), await: round(awaitUs), more: round(awaitUs - syncUs) };
    console.log(
      JSON.stringify({ bytes, us: times, heldUs: round(heldUs), calls: plain.length, ok: isRight }),
    );
  }
  if (!isRight) process.exitCode = 1;
}
