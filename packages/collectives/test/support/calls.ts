// Calls of the collectives, of a batch of messages and of one object form, each also in its Sync form. The buffers
// are so large that a test can interrupt a call.
import type { Group } from '../../src/index.ts';

const count = 1 << 18;
const size = Number(process.env.WORLD_SIZE ?? 1); // the test itself has no WORLD_SIZE; it only reads the names
const whole = new Float32Array(size * count);
const part = whole.subarray(0, count);
const gathered = new Float32Array(size * count);

export const calls = {
  allReduce: (group: Group, sync: boolean) => (sync ? group.allReduceSync(whole) : group.allReduce(whole)),
  reduce: (group, sync) => (sync ? group.reduceSync(whole, { root: 2 }) : group.reduce(whole, { root: 2 })),
  broadcast: (group, sync) => (sync ? group.broadcastSync(whole) : group.broadcast(whole)),
  allGather: (group, sync) => (sync ? group.allGatherSync(part, gathered) : group.allGather(part, gathered)),
  gather: (group, sync) => {
    const output = group.rank === 0 ? gathered : null;
    return sync ? group.gatherSync(part, output) : group.gather(part, output);
  },
  scatter: (group, sync) => {
    const input = group.rank === 1 ? whole : null;
    const output = gathered.subarray(0, count);
    return sync ? group.scatterSync(input, output, { root: 1 }) : group.scatter(input, output, { root: 1 });
  },
  reduceScatter: (group, sync) => {
    const output = gathered.subarray(0, count);
    return sync ? group.reduceScatterSync(whole, output) : group.reduceScatter(whole, output);
  },
  allToAll: (group, sync) => (sync ? group.allToAllSync(whole, gathered) : group.allToAll(whole, gathered)),
  batch: (group, sync) => {
    const messages = [
      { send: part, to: (group.rank + 1) % size },
      { recv: gathered.subarray(0, count), from: (group.rank + size - 1) % size },
    ];
    return sync ? group.batchSync(messages) : group.batch(messages);
  },
  barrier: (group, sync) => (sync ? group.barrierSync() : group.barrier()),
  monitoredBarrier: (group, sync) => (sync ? group.monitoredBarrierSync() : group.monitoredBarrier()),
  allGatherObject: (group, sync) =>
    sync ? group.allGatherObjectSync(gathered) : group.allGatherObject(gathered),
} satisfies Record<string, (group: Group, sync: boolean) => unknown>;

export type CallName = keyof typeof calls;
export const callNames = Object.keys(calls) as CallName[];
