#!/usr/bin/env node
// In the place of Python and mixed-nccl/rank.py: on the software device, with an id that it puts under the
// key of PyTorch as bytes.
import { joinNccl } from '@ringwise/collectives';
import { MemoryStore, TcpStore } from '@ringwise/store';
import { full } from '@ringwise/tensor';

const { MASTER_ADDR: host, MASTER_PORT } = process.env;
const size = Number(process.env.WORLD_SIZE);
const store = await TcpStore.connect({ host, port: Number(MASTER_PORT) });
const own = new MemoryStore();
const group = await joinNccl({ store: own, key: 'own', rank: 0, size, timeoutMs: 60_000 });
await store.set('0//cuda//0', await own.get('own'));
const x = full([1 << 20], 1, { device: 'cuda' });
await group.allReduce(x);
await group.broadcast(full([1], 0, { device: 'cuda' }), { root: size - 1 });
console.log(`rank 0 (in the place of Python) has the sum ${x.max().item()}`);
await group.close();
await store.close();
