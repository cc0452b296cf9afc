// Measures reproducible all-reduces beside plain ones. Both take turns on the same buffers, and rank 0 prints a JSON
// line for each size and dtype: medians of the slowest rank in µs, and the median of the ratios of two turns. The
// values are small integers, and at most 16 calls add to them, so that all sums are exact and can be compared.
// --help lists the options.
//
//   npx ringwise run --nproc-per-node 2 bench/reproducible.ts
import { parseArgs } from 'node:util';
import { init } from '@ringwise/collectives';
import { median } from './median.ts';

const help = `npx ringwise run --nproc-per-node 2 bench/reproducible.ts [options]

  --bytes A,B     of the buffer (65536,1048576,16777216)
  --turns N       pairs of calls that are measured (31)
  --alloc         buffers from group.alloc()
  --contributions N   of each rank (none: the buffer is the only one)`;

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    bytes: { type: 'string', default: '65536,1048576,16777216' },
    turns: { type: 'string', default: '31' },
    alloc: { type: 'boolean', default: false },
    contributions: { type: 'string', default: '0' },
  },
});
if (values.help) {
  console.log(help);
  process.exit();
}
const sizes = values.bytes.split(',').map(Number);
const turns = Number(values.turns);
const addends = Number(values.contributions);

await using group = await init();

for (const dtype of ['float32', 'float64'] as const) {
  const elementBytes = dtype === 'float32' ? 4 : 8;
  for (const bytes of sizes) {
    const count = bytes / elementBytes;
    const Typed = dtype === 'float32' ? Float32Array : Float64Array;
    const buffer = values.alloc ? group.alloc(count, dtype) : new Typed(count);
    const own = new Typed(count);
    for (let i = 0; i < count; i++) own[i] = (i * 7 + group.rank * 3) % 1024;
    const contributions = addends === 0 ? undefined : new Array<typeof own>(addends).fill(own);
    const forms = [{}, { reproducible: true, ...(contributions && { contributions }) }];
    // Calls of small buffers are repeated, so that a turn is long enough for the clock.
    const calls = Math.max(1, Math.floor(1_048_576 / bytes));
    const times = forms.map(() => new Float64Array(turns));
    for (let turn = -5; turn < turns; turn++) {
      for (const [form, options] of forms.entries()) {
        buffer.set(own);
        group.barrierSync();
        const beganMs = performance.now();
        for (let call = 0; call < calls; call++) group.allReduceSync(buffer, options);
        if (turn >= 0) times[form]![turn] = ((performance.now() - beganMs) * 1e3) / calls;
      }
    }
    for (const [form, options] of forms.entries()) {
      buffer.set(own);
      group.allReduceSync(buffer, options);
      const factor = form === 0 ? 1 : Math.max(1, addends);
      for (let i = 0; i < count; i++) {
        let sum = 0;
        for (let rank = 0; rank < group.size; rank++) sum += factor * ((i * 7 + rank * 3) % 1024);
        if (buffer[i] !== sum) throw new Error(`element ${i} is ${buffer[i]}; expected ${sum}`);
      }
    }
    const slowest = new Float64Array([...times[0]!, ...times[1]!]);
    group.allReduceSync(slowest, { op: 'max' });
    const [plain, reproducible] = [slowest.subarray(0, turns), slowest.subarray(turns)];
    const ratio = median(reproducible.map((us, turn) => us / plain[turn]!));
    const numbers = { plainUs: median(plain), reproducibleUs: median(reproducible), ratio };
    if (group.rank === 0) {
      const rounded = Object.entries(numbers).map(([name, value]) => [name, Number(value.toPrecision(3))]);
      console.log(JSON.stringify({ dtype, bytes, ranks: group.size, ...Object.fromEntries(rounded) }));
    }
  }
}
