// The functions that the ranks of join-nccl.test.ts run, each in a process of its own. Rank 0 plays another
// program, such as PyTorch: it puts its unique id as bytes into the store that all know, under that program's key.
import { MemoryStore, TcpStore } from '@ringwise/store';
import { isTestGpu } from '@ringwise/testing';
import { type CollectiveError, type Group, joinNccl } from '../../src/index.ts';
import { carrying, onDevice, registrations, useDevice } from './device-twin.ts';

async function join(rank: number, size: number, port: number, key: string): Promise<Group> {
  useDevice();
  const store = await TcpStore.connect({ host: '127.0.0.1', port });
  const own = rank === 0 ? new MemoryStore() : store;
  const group = await joinNccl({ store: own, key, rank, size, timeoutMs: 60_000 });
  if (rank === 0) await store.set(key, await own.get(key));
  await store.close();
  return group;
}

const memory = (...values: number[]) => {
  const made = onDevice(Float32Array.from(values));
  return { buffer: carrying(made), values: () => [...new Float32Array(made.bytes.buffer)] };
};

const bools = (...values: number[]) => {
  const made = onDevice({ data: Uint8Array.from(values), dtype: 'bool' });
  return { buffer: carrying(made), values: () => [...made.bytes] };
};

/** Uses everything that such a group supports, and collects its errors for the rest. */
export async function together(rank: number, port: number, key: string) {
  const group = await join(rank, 2, port, key);
  const sum = memory(rank + 1, 10 * (rank + 1));
  const takeBack = group.register(sum.buffer);
  await group.allReduce(sum.buffer);
  const first = memory(rank + 5);
  group.broadcastSync(first.buffer, { root: 1 });
  const [part, all] = [memory(rank), memory(-1, -1)];
  group.allGather(part.buffer, all.buffer).fence();
  const [both, half] = [memory(1, 2 + rank), memory(0)];
  await group.reduceScatter(both.buffer, half.buffer, { op: 'max' });
  const reduced = memory(rank + 1);
  await group.reduce(reduced.buffer, { root: 0, op: 'avg' });
  const [every, any] = [bools(0, rank, 1), bools(0, rank, 1)];
  await group.allReduce(every.buffer, { op: 'band' });
  await group.allReduce(any.buffer, { op: 'bor' });
  const told = async (call: () => PromiseLike<unknown>) => {
    try {
      await call();
      return 'passed';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const refused = [
    await told(() => group.allReduce(new Float32Array(1))),
    await told(() => group.barrier()),
    await told(() => group.split(0)),
    await told(() => group.allReduce(any.buffer, { op: 'bxor' })),
  ];
  takeBack();
  await group.close();
  return {
    registered: isTestGpu ? 0 : registrations()[0],
    found: [sum, first, all, half, every, any].map(({ values }) => values()),
    reduced: rank === 0 ? reduced.values() : null,
    refused,
  };
}

/** Kills rank 1 after the first operation. */
export async function alone(rank: number, port: number, key: string) {
  const group = await join(rank, 2, port, key);
  await group.allReduce(memory(1).buffer);
  if (rank === 1) process.kill(process.pid, 'SIGKILL');
  const error = await group.allReduce(memory(1).buffer).then(
    () => null,
    (failure: CollectiveError) => failure,
  );
  await group.close().catch(() => {});
  return error && { code: error.code, what: error.what };
}

/** Joins when no rank puts the id into the store. */
export async function withoutId(_rank: number, port: number, key: string) {
  useDevice();
  const store = await TcpStore.connect({ host: '127.0.0.1', port });
  const error = await joinNccl({ store, key, rank: 1, size: 2, timeoutMs: 300 }).catch((error) => error);
  await store.close();
  const { code, message } = error as CollectiveError;
  return { code, message };
}

/** Joins when the key holds something other than a unique id. */
export async function otherBytes(rank: number, port: number, key: string) {
  useDevice();
  const store = await TcpStore.connect({ host: '127.0.0.1', port });
  await store.set(key, 'not an id');
  const message = await joinNccl({ store, key, rank: rank + 1, size: 2 }).catch(
    (error: Error) => error.message,
  );
  await store.close();
  return message;
}
