// Measures what communication costs in a group of one over NCCL, where there is no other rank. Prints one JSON array to
// standard output, as bench.mjs does; `rate` is the time of a step with DDP over that of a step without. torch_bench.py
// uses the same names.
import { init } from '../../packages/collectives/dist/index.js';
import { ddp } from '../../packages/ddp/dist/index.js';
import { compile, scope, synchronize, zeros } from '../../packages/tensor/dist/index.js';
import { device, isSmall, median, microseconds, mlp, rows, size } from './bench-common.mjs';

const group = await init({ backend: 'nccl' });

/**
 * Measures the time per call that this thread needs to put an allReduce on the stream, without waiting for
 * the device.
 */
async function enqueue(name, count) {
  const x = zeros([size(count, 4)], { device });
  const calls = size(100, 2);
  const times = [];
  for (let i = 0; i < size(21, 1); i++) {
    const us = microseconds(() => {
      for (let call = 0; call < calls; call++) group.allReduce(x).fence();
    });
    times.push(us / calls);
    synchronize(device);
    await new Promise(setImmediate); // lets the event loop settle the operations that have ended
  }
  rows.push(isSmall ? { name } : { name, us: median(times), unit: '', rate: null });
}

/** Measures both steps, in turns. */
function compare(name, bare, withDdp) {
  const calls = size(50, 1);
  const batch = (step) => {
    const us = microseconds(() => {
      for (let i = 0; i < calls; i++) scope(() => void step());
      synchronize(device);
    });
    return us / calls;
  };
  const times = [[], []];
  for (let i = 0; i < size(21, 1); i++) {
    times[0].push(batch(bare));
    times[1].push(batch(withDdp));
  }
  const [alone, us] = times.map(median);
  rows.push(isSmall ? { name } : { name, us, unit: '× the bare step', rate: us / alone });
}

await enqueue('allReduce of 16 float32 by one rank, until it is on the stream', 16);
await enqueue('allReduce of 16Mi float32 by one rank, until it is on the stream', 1 << 24);

const steps = [await mlp(), await mlp((net) => ddp(net, { group }))];
compare('MLP 784-512-512-10 step, batch 32, DDP of one rank, eager', ...steps);
const captured = steps.map((step) => compile(step, { device }));
for (const step of captured) for (let i = 0; i < 3; i++) step();
compare('MLP 784-512-512-10 step, batch 32, DDP of one rank, captured', ...captured);
await group.close();
process.stdout.write(JSON.stringify(rows));
