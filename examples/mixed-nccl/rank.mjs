// Every rank but rank 0: all-reduces with a PyTorch process, in one NCCL communicator.
import { joinNccl } from '@ringwise/collectives';
import { TcpStore } from '@ringwise/store';
import { full } from '@ringwise/tensor';

const { MASTER_ADDR: host, MASTER_PORT } = process.env;
const [rank, size] = ['RANK', 'WORLD_SIZE'].map((name) => Number(process.env[name]));
const store = await TcpStore.connect({ host, port: Number(MASTER_PORT), timeoutMs: 60_000 });
// At its first collective, PyTorch's rank 0 puts the NCCL id of its default group under this key.
const group = await joinNccl({ store, key: '0//cuda//0', rank, size, timeoutMs: 60_000 });

const device = `cuda:${group.localRank}`;
const x = full([1 << 20], rank + 1, { device });
await group.allReduce(x);
const expected = (size * (size + 1)) / 2;
if (x.min().item() !== expected || x.max().item() !== expected) throw new Error(`the sum is ${x}`);
const last = full([1], rank, { device });
await group.broadcast(last, { root: size - 1 });
if (last.item() !== size - 1) throw new Error(`the last rank is ${last}`);
console.log(`rank ${rank} (Node) has the sum ${expected}`);
await group.close();
await store.close();
