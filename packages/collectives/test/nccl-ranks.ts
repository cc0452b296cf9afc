// What the ranks of nccl.test.ts run, each in a process of its own.
import { PrefixStore, TcpStore } from '@ringwise/store';
import { bufferSymbol, type CollectiveError, init, registerBackend } from '../src/index.ts';
import { onDevice, twinBackend, useSoftwareDevice } from './device-twin.ts';
import { serve } from './serve.ts';

/** For Pool. */
export async function serveScenarios(rank: number, port: number, checksAhead: boolean): Promise<void> {
  useSoftwareDevice();
  if (checksAhead) process.env.RINGWISE_NCCL_CHECK = '1';
  registerBackend('twin', twinBackend);
  await serve(rank, port, () => init({ backend: 'twin' }));
}

const carrying = (memory: ReturnType<typeof onDevice>) => ({ [bufferSymbol]: () => memory.view });
const floats = ({ bytes }: ReturnType<typeof onDevice>) =>
  Array.from(new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4));

/** Memory of host and device in one group; a fence that leaves the host alone; what `init()` makes of it. */
export async function bothKinds(rank: number): Promise<unknown> {
  useSoftwareDevice();
  const group = await init();
  const device = onDevice(new Float32Array(5).fill(rank + 1), rank % 2);
  const host = new Int32Array(3).fill(rank + 1);
  const first = group.allReduce(carrying(device));
  const second = group.allReduce(host, { op: 'bor' });
  const third = group.allReduce(carrying(device), { op: 'max' });
  await Promise.all([first, second, third]);
  const fenced = group.allReduce(carrying(device), { op: 'avg' });
  fenced.fence();
  const wasDone = fenced.done;
  await fenced;
  const refused = await group.allReduce(carrying(device), { op: 'bxor' }).catch((error: unknown) => error);
  const { backend } = group;
  await group.close();
  const { message } = refused as CollectiveError;
  return { backend, device: floats(device), host: [...host], wasDone, message };
}

/** Works until a rank is killed; the survivors make a new group of their own. */
export async function survive(rank: number, port: number, sync: boolean): Promise<unknown> {
  useSoftwareDevice();
  const group = await init({ backend: 'nccl', timeoutMs: 20_000 });
  const control = await TcpStore.connect({ host: '127.0.0.1', port });
  const memory = onDevice(new Float32Array(1000).fill(1), rank % 2);
  let failure: CollectiveError | null = null;
  for (let n = 0; failure === null; n++) {
    try {
      if (sync) group.allReduceSync(carrying(memory), { op: 'max' });
      else await group.allReduce(carrying(memory), { op: 'max' });
      if (n === 2) await control.add('ready', 1);
    } catch (error) {
      failure = error as CollectiveError;
    }
  }
  const endedAtMs = Date.now();
  await group.close();
  const store = new PrefixStore('survivors', control);
  const next = await init({ backend: 'nccl', store, rank: rank === 0 ? 0 : 1, size: 2 });
  const again = onDevice(new Float32Array(3).fill(rank + 1), rank % 2);
  await next.allReduce(carrying(again));
  await next.close();
  await control.close();
  const { code, peers } = failure;
  return { code, peers, endedAtMs, sum: floats(again) };
}

/** One rank gives another length than the others, and nobody has looked ahead. */
export async function disagree(rank: number): Promise<unknown> {
  useSoftwareDevice();
  const group = await init({ backend: 'nccl', timeoutMs: 20_000 });
  const memory = onDevice(new Float32Array(rank === 1 ? 70_000 : 60_000), rank % 2);
  const error = await group.allReduce(carrying(memory)).catch((error: unknown) => error);
  await group.close();
  const { code, peers, message } = error as CollectiveError;
  return { code, peers, message };
}

/** NCCL is not where the variable says. */
export async function withoutLibrary(): Promise<string> {
  useSoftwareDevice();
  process.env.RINGWISE_LIBNCCL = '/nowhere/libnccl.so';
  try {
    await init({ backend: 'nccl' });
    return 'made';
  } catch (error) {
    return (error as Error).message;
  }
}
