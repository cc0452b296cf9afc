// Every rank but rank 0: takes a number from the job's store and puts its square there.
import { TcpStore } from '@ringwise/store';

const { RANK, MASTER_ADDR: host, MASTER_PORT } = process.env;
const store = await TcpStore.connect({ host, port: Number(MASTER_PORT), timeoutMs: 60_000 });
const task = Number(Buffer.from(await store.get(`task/${RANK}`)).toString());
await store.set(`answer/${RANK}`, String(task ** 2));
await store.wait(['thanks']);
console.log(`rank ${RANK} (Node) squared ${task}`);
await store.close();
