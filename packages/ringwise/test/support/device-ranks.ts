// Functions that the ranks of device-collectives.test.ts run. serveOnDevice() runs the contract suite of the
// collectives, with each array as a tensor in the memory of a CUDA device from the call until it has ended; the others
// run one case.
import { createRequire } from 'node:module';
import {
  type BufferLike,
  bufferSymbol,
  CollectiveError,
  type FlightEntry,
  type Group,
  init,
  type TypedBuffer,
  type Work,
} from '@ringwise/collectives';
import { runScenario, type ScenarioName } from '@ringwise/collectives/testing';
import {
  type DType,
  fromHost,
  type HostArray,
  ones,
  synchronize,
  type Tensor,
  zeros,
} from '@ringwise/tensor';
import { deviceMemoryAddon, serveCommands, useTestDevice } from '@ringwise/testing';

const tensorDtypes: ReadonlySet<string> = new Set<DType>([
  ...(['float32', 'float64', 'float16', 'bfloat16'] as const),
  ...(['int32', 'int64', 'uint8', 'bool'] as const),
]);

const dtypeOfArray: Readonly<Record<string, DType>> = {
  Float32Array: 'float32',
  Float64Array: 'float64',
  Int32Array: 'int32',
  BigInt64Array: 'int64',
  Uint8Array: 'uint8',
};

/** An array of the suite and the device tensor that replaces it during a call. */
interface Lent {
  readonly tensor: Tensor;
  readonly array: HostArray;
}

function lend(like: unknown, all: Lent[]): unknown {
  if (typeof like !== 'object' || like === null || bufferSymbol in like) return like;
  const isTyped = 'data' in like && 'dtype' in like;
  const array = (isTyped ? (like as TypedBuffer).data : like) as HostArray | null;
  if (array === null || !ArrayBuffer.isView(array)) return like;
  const dtype = isTyped ? (like as TypedBuffer).dtype : dtypeOfArray[array.constructor.name];
  // Tensors do not have the other dtypes, so arrays of these stay on the host.
  if (dtype === undefined || !tensorDtypes.has(dtype)) return like;
  const known = all.find((lent) => lent.array === array);
  if (known !== undefined) return known.tensor;
  const tensor = fromHost(array, [array.length], { dtype: dtype as DType }).to('cuda');
  all.push({ tensor, array });
  return tensor;
}

function giveBack(all: readonly Lent[]): void {
  for (const { tensor, array } of all) {
    array.set(tensor.dataSync() as never);
    tensor.dispose();
  }
}

const verbs = [
  ...['allReduce', 'reduce', 'broadcast', 'allGather', 'gather', 'scatter'],
  ...['reduceScatter', 'allToAll', 'send', 'recv'],
];

/** Callbacks of calls that have not been awaited. A later blocking call may end them; it then runs the callbacks. */
const pending = new Set<() => void>();

const rethrow = (error: unknown): unknown => {
  throw error;
};

/** Wraps a Work so that it copies the tensors back to the arrays when it has ended. */
function handled<T>(work: Work<T>, all: readonly Lent[]): Work<T> {
  let isBack = false;
  const back = (): void => {
    if (!isBack) giveBack(all);
    isBack = true;
    pending.delete(ifDone);
  };
  const ifDone = (): void => {
    if (work.done) back();
  };
  pending.add(ifDone);
  return new Proxy(work, {
    get: (target, name) => {
      if (name === 'fence')
        return () => {
          const value = target.fence();
          back();
          for (const each of pending) each();
          return value;
        };
      // Settles in the same turn of the event loop as the Work itself, because the suite checks the order of ends.
      const then = (onDone: (value: T) => unknown = (value) => value, onError = rethrow) =>
        target.then(
          (value) => {
            back();
            return onDone(value);
          },
          (error) => {
            back();
            return onError(error);
          },
        );
      if (name === 'then') return then;
      if (name === 'catch') return (onError?: typeof rethrow) => then(undefined, onError);
      if (name === 'finally') return (onEnd?: () => void) => target.finally(back).finally(onEnd);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Wraps a group so that single buffers of calls lie on the device. Calls with lists stay in host memory. */
export function onDevice(group: Group): Group {
  return new Proxy(group, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const call = value.bind(target) as (...given: unknown[]) => unknown;
      const verb = String(name).replace(/Sync$/, '');
      if (verb === 'split' || verb === 'subgroup') {
        return async (...given: unknown[]) => {
          const child = (await call(...given)) as Group | null;
          return child && onDevice(child);
        };
      }
      if (!verbs.includes(verb)) return call;
      return (...given: unknown[]) => {
        const options = given.at(-1) as { readonly reproducible?: boolean; readonly residual?: unknown };
        if (options?.reproducible) return call(...given);
        const all: Lent[] = [];
        // Input and output must be on one device.
        const lent = given.some(Array.isArray) ? given : given.map((each) => lend(each, all));
        const result = call(...lent);
        if (String(name) === verb) return handled(result as Work<unknown>, all);
        giveBack(all);
        for (const each of pending) each();
        return result;
      };
    },
  });
}

/** Runs the scenarios that the test puts into its store, each in a new group, until the test puts null. */
export function serveOnDevice(rank: number, port: number, backend: string): Promise<void> {
  useTestDevice();
  return serveCommands(rank, port, async (_, scenario: ScenarioName, args: unknown[]) => {
    const group = await init({ backend });
    const outcome = await runScenario(onDevice(group), scenario, args);
    await group.close();
    return outcome;
  });
}

/** Reduces and gathers tensors of several pieces between operations of the device, without waiting between calls. */
export async function inOrder(rank: number, count: number): Promise<unknown> {
  useTestDevice();
  await using group = await init({ backend: 'host' });
  const x = ones([count], { device: 'cuda' }).mul(rank + 1);
  const works: Work[] = [];
  for (let i = 0; i < 3; i++) {
    works.push(group.allReduce(x as unknown as BufferLike, { op: 'sum' }));
    works.at(-1)!.fence();
    x.mul_(0.5);
  }
  const after = x.add(1);
  const y = zeros([count * group.size], { device: 'cuda' });
  const gathered = group.allGather(after as unknown as BufferLike, y as unknown as BufferLike);
  const small = new Float32Array([rank]);
  const last = group.allReduce(small);
  await Promise.all([gathered, last]);
  synchronize('cuda');
  return [y.min().item(), y.max().item(), small[0]];
}

/** Makes calls of several pieces, of one piece and on host memory. Returns what the flight record holds of them. */
export async function recorded(rank: number, count: number): Promise<unknown> {
  useTestDevice();
  const group = await init({ backend: 'host' });
  const x = ones([count], { device: 'cuda' }) as unknown as BufferLike;
  const y = zeros([count * group.size], { device: 'cuda' }) as unknown as BufferLike;
  const beganMs = Number(process.hrtime.bigint()) / 1e6;
  const works = [
    group.allReduce(x, { op: 'max' }),
    group.allReduce(new Float32Array([rank])),
    rank === 0 ? group.send(new Uint8Array(1), 1) : group.recv(new Uint8Array(1), 0),
    group.allGather(x, y),
    group.broadcast(ones([5], { device: 'cuda' }) as unknown as BufferLike),
  ];
  await Promise.all(works);
  group.barrierSync();
  const record = group.flightRecord();
  await group.close();
  const told = (entries: readonly FlightEntry[]) =>
    entries
      .filter(({ verb }) => verb !== 'send' && verb !== 'recv')
      .map(({ verb, seq, count, bytes, state }) => [verb, seq, count, bytes, state]);
  return {
    numbers: record.map(({ number }) => number),
    told: told(record),
    toldWhenClosed: told(group.flightRecord()).slice(0, 5),
    seqs: works.filter((work) => work.verb !== 'send' && work.verb !== 'recv').map(({ seq }) => seq),
    // Collectives must follow one another. Only pieces of one collective may overlap.
    isInOrder: record
      .filter(({ peer }) => peer === null)
      .every(({ startedMs, endedMs }, i, all) => {
        return startedMs! >= (all[i - 1]?.endedMs ?? beganMs) && endedMs! >= startedMs!;
      }),
  };
}

/**
 * Calls collectives on one rank. One that leaves its values alone does not leave the device; the others go through host
 * memory, in order with the device's work.
 */
export async function oneRank(): Promise<unknown> {
  useTestDevice();
  await using group = await init();
  const count = 1_500_001;
  const x = ones([count], { device: 'cuda' }).mul(6);
  group.allReduce(x as unknown as BufferLike, { op: 'avg' }).fence();
  void group.allReduce(x as unknown as BufferLike, { op: 'premulSum', factor: 0.5 });
  const y = zeros([count], { device: 'cuda' });
  const gathered = group.allGather(x as unknown as BufferLike, y as unknown as BufferLike);
  const z = zeros([count], { device: 'cuda' });
  const again = group.allGather(y as unknown as BufferLike, z as unknown as BufferLike);
  const wasDone = gathered.done;
  again.fence();
  y.add_(1);
  return [group.backend, wasDone, z.min().item(), z.max().item(), y.min().item(), y.max().item()];
}

/** Sends messages between device memory of one rank and host memory of the other. */
export async function messages(rank: number, count: number): Promise<unknown> {
  useTestDevice();
  await using group = await init({ backend: 'host' });
  const near = new Float32Array(count);
  const there = ones([count], { device: 'cuda' }).mul(rank + 5);
  if (rank === 0) {
    const sent = group.send(there as unknown as BufferLike, 1, { tag: 3 });
    await group.recv(near, 1, { tag: 4 });
    await sent;
    return [near[0], near.at(-1)];
  }
  const received = group.recv(near, 0, { tag: 3 });
  group.sendSync(there as unknown as BufferLike, 0, { tag: 4 });
  await received;
  return [near[0], near.at(-1)];
}

/**
 * Reduces one tensor after the other, of the lengths of this rank. Returns the code and the text of the first error,
 * and the values of the tensors.
 */
export async function reducedInTurn(rank: number, lengths: readonly (readonly number[])[]): Promise<unknown> {
  useTestDevice();
  const group = await init({ backend: 'host', timeoutMs: 20_000 });
  const all = lengths[rank]!.map((length) => ones([length], { device: 'cuda' }));
  const ends = await Promise.allSettled(all.map((x) => group.allReduce(x as unknown as BufferLike)));
  const failed = ends.find((end) => end.status === 'rejected');
  const { code, message } = (failed?.reason ?? {}) as Partial<CollectiveError>;
  await group.close().catch(() => {});
  return { code, message, values: all.map((x) => [x.min().item(), x.max().item()]) };
}

/** Lets rank 1 find no device where its buffer is said to lie. Returns the code and the text of the error. */
export async function noDevice(rank: number, verb: 'allReduce' | 'message'): Promise<unknown> {
  useTestDevice();
  if (rank === 1) process.env.RINGWISE_LIBCUDA = '/nowhere/libcuda.so.1';
  const group = await init({ backend: 'host' });
  const view = {
    dtype: 'float32',
    count: 8,
    device: { kind: 'cuda', index: 0 },
    host: null,
    handle: { address: 512n, owner: {} },
  } as const;
  const buffer = rank === 0 ? ones([8], { device: 'cuda' }) : { [bufferSymbol]: () => view };
  const like = buffer as unknown as BufferLike;
  const call = () =>
    verb === 'allReduce' ? group.allReduce(like) : rank === 0 ? group.recv(like, 1) : group.send(like, 0);
  const told = await call().then(
    () => 'passed',
    ({ code, what, peers, secondary }: CollectiveError) => ({ code, what, peers, secondary }),
  );
  await group.close().catch(() => {});
  return told;
}

/** Lets rank 1 leave. Returns the error of rank 0, which waits for it with a tensor on its device. */
export async function lost(rank: number): Promise<unknown> {
  useTestDevice();
  const group = await init({ backend: 'host' });
  const x = ones([3_000_000], { device: 'cuda' });
  if (rank === 1) process.exit(0);
  try {
    await group.allReduce(x as unknown as BufferLike);
    return 'passed';
  } catch (error) {
    if (!CollectiveError.is(error)) throw error;
    const again = await group
      .allReduce(x as unknown as BufferLike)
      .catch((failure: CollectiveError) => failure.code);
    await group.close().catch(() => {});
    return [error.code, error.verb, error.seq, error.peers, again, x.sum().item() > 0];
  }
}

/** Makes the device of rank 1 fail. Returns the code and the text of the error. */
export async function failing(rank: number): Promise<unknown> {
  useTestDevice();
  const group = await init({ backend: 'host' });
  const x = ones([3_000_000], { device: 'cuda' });
  synchronize('cuda');
  if (rank === 1) {
    const addon = createRequire(import.meta.url)(deviceMemoryAddon) as { breakDevice: () => void };
    addon.breakDevice();
  }
  const told = await group
    .allReduce(x as unknown as BufferLike)
    .then(() => 'passed')
    .catch(({ code, what, peers, secondary }: CollectiveError) => ({ code, what, peers, secondary }));
  await group.close().catch(() => {});
  return told;
}
