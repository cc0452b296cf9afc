// In the place of mixed-nccl/rank.py: on the software device, with an id that it puts under the key of PyTorch as bytes.
import { joinNccl } from '@ringwise/collectives';
import { MemoryStore, TcpStore } from '@ringwise/store';
import { full } from '@ringwise/tensor';

const { MASTER_ADDR: host, MASTER_PORT, WORLD_SIZE } = process.env;
const store = await TcpStore.connect({ host, port: Number(MASTER_PORT) });
const own = new MemoryStore();
const group = await joinNccl({
  store: own,
  key: 'own',
  rank: 0,
  size: Number(WORLD_SIZE),
  timeoutMs: 20_000,
});
await store.set('0//cuda//0', await own.get('own'));
await group.allReduce(full([1 << 20], 1, { device: 'cuda' }));
await group.broadcast(full([1], 0, { device: 'cuda' }), { root: Number(WORLD_SIZE) - 1 });
await group.close();
await store.close();
