// Gives each rank its own part of the data: in every epoch another one, and all of them together are the whole.
import { init } from '@ringwise/collectives';
import { DataLoader, DistributedSampler } from '@ringwise/data';

const group = await init();
const dataset = { length: 8, get: (index) => index };
const sampler = new DistributedSampler(dataset.length, { replicas: group.size, rank: group.rank });
const loader = new DataLoader(dataset, { batchSize: 2, sampler });

for (let epoch = 0; epoch < 2; epoch++) {
  sampler.setEpoch(epoch); // without it, every epoch has the same order
  const seen = [];
  for await (const { data } of loader) seen.push(...data);
  // Objects of all ranks, in rank order.
  const parts = await group.allGatherObject(seen);
  if (group.rank === 0) console.log(`epoch ${epoch + 1}: ${parts.map((part) => part.join(' ')).join(' | ')}`);
}
await group.close();
