// Says which ranks are on which host, and trains a step whose gradients travel in 16 bits between the hosts.
import { init } from '@ringwise/collectives';
import { assertInSync, ddp, wireHook } from '@ringwise/ddp';
import { manualSeed, ones } from '@ringwise/tensor';
import { Linear } from '@ringwise/tensor/nn';

const group = await init();
if (group.rank === 0) {
  for (const [host, ranks] of group.hosts.entries())
    console.log(`host ${host} has the ranks ${ranks.join(', ')}`);
}
manualSeed(1);
const net = new Linear(4, 1);
const model = await ddp(net, { group, hook: wireHook('bfloat16') });
model
  .forward(ones([2, 4]).mul(group.rank))
  .mean()
  .backward();
await assertInSync(model, group);
// The mean of the inputs of all ranks: 0.5 for two ranks, 1.5 for four.
if (group.rank === 0) console.log(`gradient ${net.weight.grad.toArray()[0].join(' ')}`);
await group.close();
