// Measures what a second copy of the optimizer state costs (ZeRO, stage 1), and how long a new deal takes after a loss.
//
//   npx ringwise run --nproc-per-node 4 bench/zero-copies.ts [--millions 20] [--steps 20]
import { parseArgs } from 'node:util';
import { init } from '@ringwise/collectives';
import { ZeroRedundancyOptimizer } from '@ringwise/ddp';
import { fromHost, memory, scope, zeros } from '@ringwise/tensor';
import { parameter } from '@ringwise/tensor/nn';
import { AdamW } from '@ringwise/tensor/optim';
import { median } from './median.ts';

const { values } = parseArgs({
  options: { millions: { type: 'string', default: '20' }, steps: { type: 'string', default: '20' } },
});
const [count, steps] = [40, Number(values.steps)];
const each = Math.round((Number(values.millions) * 1e6) / count);

await using group = await init();
const params = Array.from({ length: count }, () => parameter(zeros([each])));
const gradient = fromHost(new Float32Array(each).fill(0.5));
for (const param of params) scope(() => param.mul(gradient).sum().backward());

const make = (shard: typeof params) => new AdamW(shard, { lr: 1e-3 });
const before = memory().bytes;
for (const copies of [1, 2] as const) {
  const zero = new ZeroRedundancyOptimizer(params, group, make, { copies });
  const [updates, exchanges]: [number[], number[]] = [[], []];
  for (let step = 0; step < steps; step++) {
    await group.barrier();
    const began = performance.now();
    zero.update();
    const updated = performance.now();
    await group.barrier();
    const sends = performance.now();
    await zero.exchange();
    updates.push(updated - began);
    exchanges.push(performance.now() - sends);
  }
  const state = Object.values(zero.local!.stateDict().tensors).reduce((sum, { count: n }) => sum + 4 * n, 0);
  if (group.rank === 0)
    console.log(
      `copies ${copies}: update ${median(updates).toFixed(1)} ms, exchange ${median(exchanges).toFixed(1)} ms, ` +
        `state ${((state * copies) / 1e6).toFixed(0)} MB a rank`,
    );
  if (copies === 1) continue;
  // Rank 1 is taken for lost.
  const rest = await group.split(group.rank === 1 ? null : 0, group.rank, { name: 'those that are left' });
  if (rest === null) continue;
  const began = performance.now();
  await zero.rebind(rest);
  if (rest.rank === 0) console.log(`rebind without one rank: ${(performance.now() - began).toFixed(0)} ms`);
}
if (group.rank === 0)
  console.log(`${values.millions} M parameters, ${group.size} ranks, ${before >> 20} MiB before`);
