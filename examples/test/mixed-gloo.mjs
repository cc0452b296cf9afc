// Rank 0 of a job whose rank 1 is PyTorch with gloo: waits until that has come to the store, then calls init().
import { init } from '@ringwise/collectives';
import { TcpStore } from '@ringwise/store';

const { MASTER_ADDR: host, MASTER_PORT } = process.env;
const store = await TcpStore.connect({ host, port: Number(MASTER_PORT), timeoutMs: 90_000 });
await store.wait(['default_pg/0//cpu//0/1']);
await store.close();
await init({ timeoutMs: 500 });
