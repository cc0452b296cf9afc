// The functions that the ranks of nccl.test.ts run, each in a process of its own.
import { PrefixStore, TcpStore } from '@ringwise/store';
import { loadNative, type NativeMemory } from '../../src/backends/native.ts';
import { isReducibleByNccl } from '../../src/backends/nccl/nccl.ts';
import { type CollectiveError, type Group, init, registerBackend, type Work } from '../../src/index.ts';
import {
  batches,
  breakNccl,
  carrying,
  keepBusy,
  onDevice,
  registrations,
  stallNccl,
  twinBackend,
  useDevice,
} from './device-twin.ts';
import { serve } from './serve.ts';

/** Serves a Pool. */
export async function serveScenarios(rank: number, port: number, checksAhead: boolean): Promise<void> {
  useDevice();
  if (checksAhead) process.env.RINGWISE_NCCL_CHECK = '1';
  registerBackend('twin', twinBackend);
  await serve(rank, port, () => init({ backend: 'twin' }));
}

const floats = ({ bytes }: ReturnType<typeof onDevice>) =>
  Array.from(new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4));

/** Reduces host and device memory in one group, fences without blocking the host, and reports what init() chose. */
export async function bothKinds(rank: number): Promise<unknown> {
  useDevice();
  const group = await init();
  const device = onDevice(new Float32Array(5).fill(rank + 1), rank % 2);
  const host = new Int32Array(3).fill(rank + 1);
  const first = group.allReduce(carrying(device));
  const second = group.allReduce(host, { op: 'bor' });
  const third = group.allReduce(carrying(device), { op: 'max' });
  await Promise.all([first, second, third]);
  const word = new Uint8Array(1);
  if (rank > 0) await group.recv(word, 0);
  const fenced = group.allReduce(carrying(device), { op: 'avg' });
  fenced.fence();
  const wasDone = rank === 0 && fenced.done; // rank 1 has not begun
  if (rank === 0) for (const other of [1, 2]) await group.send(word, other);
  await fenced;
  const refused = await group.allReduce(carrying(device), { op: 'bxor' }).catch((error: unknown) => error);
  const { backend } = group;
  await group.close();
  const { message } = refused as CollectiveError;
  return { backend, device: floats(device), host: [...host], wasDone, message };
}

/**
 * Fences calls on lists of buffers: on a device, with host memory in the list, behind calls of which not all
 * operations are started, and of the Sync form.
 */
export async function fencedLists(rank: number): Promise<unknown> {
  useDevice();
  const group = await init({ backend: 'auto' });
  const far = [5, 20_000].map((count) => onDevice(new Float32Array(count).fill(rank + 1), rank % 2));
  const near = new Float32Array(30_000).fill(rank + 1);
  await group.allReduce(far.map(carrying)); // 3
  const word = new Uint8Array(1);
  const begun = async (call: () => Work) => {
    if (rank > 0) await group.recv(word, 0);
    const work = call();
    work.fence();
    const wasDone = work.done;
    if (rank === 0) await group.send(word, 1);
    await work;
    return wasDone;
  };
  const wasDone = [await begun(() => group.allReduce(far.map(carrying), { op: 'avg' }))]; // 3
  const early = group.broadcastObject(rank === 0 ? 'first' : undefined);
  const late = group.allReduce(far.map(carrying)); // 6
  late.fence();
  wasDone.push(late.done);
  const mixed = group.allReduce([...far.map(carrying), near]); // 12, 3
  mixed.fence();
  wasDone.push(mixed.done);
  group.allReduceSync(far.map(carrying), { op: 'max' });
  const sums = far.map((memory) => [...new Set(floats(memory))]);
  const said = await early;
  await Promise.all([late, mixed]);
  await group.close();
  return { wasDone, sums: [...sums, [...new Set(near)]], said };
}

/** Calls verbs on lists of buffers, and counts the groups of NCCL calls and the host operations that they cause. */
export async function lists(rank: number): Promise<unknown> {
  useDevice();
  const ofHost = countOfHost();
  const group = await init({ backend: 'nccl' });
  const reduced = [3, 20_000, 0, 5].map((count) => onDevice(new Float32Array(count).fill(rank), rank % 2));
  const copied = [7, 8].map((count) => onDevice(new Float32Array(count).fill(rank), rank % 2));
  const counts: number[][] = [];
  const count = async (call: () => PromiseLike<void>) => {
    const before = [batches(), ofHost()] as const;
    await call();
    counts.push([batches() - before[0], ofHost() - before[1]]);
  };
  await count(() => group.allReduce(reduced.map(carrying), { op: 'avg' })); // also opens the device
  await count(() => group.allReduce(reduced.map(carrying), { op: 'premulSum', factor: 2 }));
  await count(() => group.broadcast(copied.map(carrying), { root: 1 }));
  group.allReduceSync(reduced.map(carrying), { op: 'max' });
  await group.close();
  const sums = [...reduced, ...copied].map((memory) => [...new Set(floats(memory))]);
  return { counts, sums };
}

/**
 * Registers memory before and after the device is open. Returns how many registrations remain after each step
 * and at the end.
 */
export async function registered(rank: number): Promise<unknown> {
  useDevice();
  const group = await init({ backend: 'auto' });
  const [early, late, left] = [1, 2, 3].map((value) => onDevice(new Float32Array(5).fill(value), rank % 2));
  const all = [early!, late!, left!];
  const takeBack = group.register(carrying(early!));
  const nothing = group.register(new Float32Array(5));
  const counts = [registrations()[1]];
  await group.allReduce(carrying(early!));
  counts.push(registrations()[1]);
  const takeBackToo = group.register(carrying(late!));
  group.register(carrying(left!));
  await group.allReduce(all.map(carrying));
  counts.push(registrations()[1]);
  const last = group.allReduce(carrying(late!));
  for (const each of [takeBack, takeBack, takeBackToo, nothing]) each();
  await group.allReduce(carrying(early!));
  counts.push(registrations()[1]);
  await last;
  await group.close();
  takeBackToo();
  return { counts: [...counts, ...registrations()], sums: all.map((memory) => floats(memory)[0]) };
}

/**
 * Reduces on a device that is busy with earlier work for longer than the timeout. If `isMissing`, rank 1 does not make
 * these calls. Returns the error of the first call, the time until it came, and the sum.
 */
export async function behindQueuedWork(rank: number, isMissing: boolean): Promise<unknown> {
  useDevice();
  const world = await init({ backend: 'nccl' });
  const group = (await world.split(0, rank, { timeoutMs: 3_000 }))!;
  const memory = onDevice(new Float32Array(5).fill(rank + 1), rank % 2);
  await group.allReduce(carrying(memory)); // 3
  await world.barrier();
  keepBusy(rank % 2, 6_000);
  const beganAtMs = Date.now();
  const calls = isMissing && rank === 1 ? [] : [1, 2].map(() => group.allReduce(carrying(memory))); // 6, 12
  const [first] = await Promise.allSettled(calls);
  const tookMs = Date.now() - beganAtMs;
  const error = first?.status === 'rejected' ? (first.reason as CollectiveError) : undefined;
  await world.barrier();
  await world.close();
  return { code: error?.code, peers: error?.peers, sum: floats(memory), tookMs };
}

/** Starts to count the operations of this process's host groups. The result returns the count. */
function countOfHost(): () => number {
  const addon = loadNative() as { HostGroup: ReturnType<typeof loadNative>['HostGroup'] };
  type Started = new (...given: never[]) => { start(...memory: NativeMemory): number };
  let count = 0;
  addon.HostGroup = class extends (addon.HostGroup as unknown as Started) {
    override start(...memory: NativeMemory): number {
      count++;
      return super.start(...memory);
    }
  } as unknown as typeof addon.HostGroup;
  return () => count;
}

/** Works until a rank is killed, which ends all pending operations. The survivors then make a new group. */
export async function survive(rank: number, port: number, sync: boolean): Promise<unknown> {
  useDevice();
  const group = await init({ backend: 'nccl', timeoutMs: 20_000 });
  const control = await TcpStore.connect({ host: '127.0.0.1', port });
  const failures = sync ? [await lossIn(group, control, sync)] : await lossOfMany(group, control);
  await group.close();
  const store = new PrefixStore('survivors', control);
  const next = await init({ backend: 'nccl', store, rank: rank === 0 ? 0 : 1, size: 2 });
  const again = onDevice(new Float32Array(3).fill(rank + 1), rank % 2);
  await next.allReduce(carrying(again));
  await next.close();
  await control.close();
  const told = failures.map(({ code, peers }) => ({ code, peers }));
  return { told, sum: floats(again) };
}

/** Works until a rank is killed. The survivors then go on by shrink(), with device memory and host memory. */
export async function goOn(rank: number, port: number, backend: string): Promise<unknown> {
  useDevice();
  const group = await init({ backend, timeoutMs: 20_000 });
  const control = await TcpStore.connect({ host: '127.0.0.1', port });
  await lossIn(group, control, false);
  const left = await group.shrink();
  const device = onDevice(new Float32Array(3).fill(rank + 1), rank % 2);
  const host = new Float32Array(3).fill(rank + 1);
  await Promise.all([left.allReduce(carrying(device)), left.allReduce(host)]);
  const parted = (await left.split(0))!;
  await parted.allReduce(carrying(device), { op: 'avg' });
  const { name, ranks, backend: kind } = left;
  await group.close();
  await control.close();
  return { name, ranks, kind, device: floats(device), host: [...host] };
}

/** Works until a rank is lost. Returns the error. */
async function lossIn(group: Group, control: TcpStore, sync: boolean): Promise<CollectiveError> {
  const memory = onDevice(new Float32Array(1000).fill(1), group.rank % 2);
  for (let n = 0; ; n++) {
    try {
      if (sync) group.allReduceSync(carrying(memory), { op: 'max' });
      else await group.allReduce(carrying(memory), { op: 'max' });
      if (n === 2) await control.add('ready', 1);
    } catch (error) {
      return error as CollectiveError;
    }
  }
}

/** Starts three operations that rank 1 never calls. Returns the error of each when rank 1 is lost. */
async function lossOfMany(group: Group, control: TcpStore): Promise<CollectiveError[]> {
  const memory = onDevice(new Float32Array(1000).fill(1), group.rank % 2);
  await group.allReduce(carrying(memory), { op: 'max' });
  const count = group.rank === 1 ? 0 : 3;
  const pending = Array.from({ length: count }, () => group.allReduce(carrying(memory), { op: 'max' }));
  const ended = Promise.allSettled(pending);
  await control.add('ready', 1);
  if (group.rank === 1) await new Promise((resolve) => setTimeout(resolve, 60_000));
  return (await ended).map((end) => (end as PromiseRejectedResult).reason ?? 'nothing');
}

/** Makes one rank pass another length than the others, without the comparison before the operation. */
export async function disagree(rank: number, sync: boolean): Promise<unknown> {
  useDevice();
  const group = await init({ backend: 'nccl', timeoutMs: 20_000 });
  const memory = onDevice(new Float32Array(rank === 1 ? 1_500_000 : 1_400_000), rank % 2);
  const call = async () => {
    if (sync) group.allReduceSync(carrying(memory));
    else await group.allReduce(carrying(memory));
  };
  const error = await call().catch((error: unknown) => error);
  await group.close();
  const { code, peers, message } = error as CollectiveError;
  return { code, peers, message };
}

/** Makes the ranks disagree. Rank 1 awaits its operation after rank 0 got its error and left. Returns the errors. */
export async function disagreeAndLeave(rank: number): Promise<unknown> {
  useDevice();
  const group = await init({ backend: 'nccl', timeoutMs: 20_000 });
  const memory = () => onDevice(new Float32Array(1_500_000), rank % 2);
  await group.allReduce(carrying(memory()));
  const calls = [group.allReduce(carrying(memory()), { op: rank === 1 ? 'max' : 'sum' })];
  if (rank === 1) {
    calls.push(group.allReduce(carrying(memory())), group.allReduce(new Float32Array(8)));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);
  }
  const errors = await Promise.allSettled(calls);
  await group.close().catch(() => {});
  return errors.map((each) => {
    const { code, what } = (each as PromiseRejectedResult).reason as CollectiveError;
    return { code, what };
  });
}

/** Uses another device than that of the group, then the right one, and sends a message from the other one. */
export async function secondDevice(rank: number): Promise<unknown> {
  useDevice();
  const group = await init({ backend: 'auto', timeoutMs: 20_000 });
  const [first, second] = [0, 1].map((device) => carrying(onDevice(new Float32Array(4), device)));
  await group.allReduce(first!);
  const ends = [
    await group.allReduce(second!).catch((error: CollectiveError) => `${error.code} ${error.what}`),
    await group.allReduce(first!).then(() => 'ok'),
    await (rank === 0 ? group.send(second!, 1) : group.recv(second!, 0)).then(() => 'ok'),
  ];
  await group.close();
  return ends;
}

/** Makes rank 0 pass buffers on two devices in its first call on device memory. */
export async function twoDevicesAtOnce(rank: number): Promise<unknown> {
  useDevice();
  const group = await init({ backend: 'auto', timeoutMs: 20_000 });
  const buffers = [0, rank === 0 ? 1 : 0].map((device) => carrying(onDevice(new Float32Array(4), device)));
  const error = await group.allReduce(buffers).catch((failure: unknown) => failure);
  await group.close().catch(() => {});
  const { code, peers, what } = error as CollectiveError;
  return { code, peers, what };
}

/** Makes one rank pass another length for the third of many buffers. */
export async function disagreeInList(rank: number, total: number, sync: boolean): Promise<unknown> {
  useDevice();
  const group = await init({ backend: 'nccl', timeoutMs: 20_000 });
  await group.barrier();
  // These lengths take so long that the comparison comes first. A rank with a shorter buffer could otherwise end.
  const third = rank === 1 ? 1_500_000 : 1_400_000;
  const lengths = Array.from({ length: total }, (_, at) => (at === 2 ? third : 100));
  const list = lengths.map((length) => carrying(onDevice(new Float32Array(length), rank % 2)));
  const call = async () => (sync ? group.allReduceSync(list) : group.allReduce(list));
  const error = await call().catch((error: unknown) => error);
  await group.close();
  const { code, peers, what } = error as CollectiveError;
  return { code, peers, what };
}

/**
 * Makes one rank reduce with another op, in a loop that never returns to the event loop. Returns the number of
 * rounds until it gets the error.
 */
export async function disagreeBlocking(rank: number): Promise<unknown> {
  useDevice();
  const group = await init({ backend: 'nccl', timeoutMs: 20_000 });
  const memory = onDevice(new Float32Array(8), rank % 2);
  let rounds = 0;
  try {
    for (; rounds < 1000; rounds++)
      group.allReduce(carrying(memory), { op: rank === 1 && rounds === 3 ? 'max' : 'sum' }).fence();
    return { rounds };
  } catch (error) {
    await group.close();
    return { code: (error as CollectiveError).code, rounds };
  }
}

/** Makes the ranks reduce with different ops while NCCL cannot connect them. Returns the error of a fence. */
export async function disagreeStalled(rank: number): Promise<unknown> {
  useDevice();
  const group = await init({ backend: 'nccl', timeoutMs: 30_000 });
  const memory = onDevice(new Float32Array(8), rank % 2);
  await group.allReduce(carrying(memory));
  stallNccl();
  let code = '';
  try {
    group.allReduce(carrying(memory), { op: rank === 1 ? 'max' : 'sum' }).fence();
  } catch (error) {
    code = (error as CollectiveError).code;
  }
  await group.close().catch(() => {});
  return { code };
}

/**
 * Makes NCCL fail on rank 0 only. Returns each rank's error and the time until it came. If `closing`, the ranks
 * are closing the group at that time.
 */
export async function failsOnOne(rank: number, closing: boolean): Promise<unknown> {
  useDevice();
  const group = await init({ backend: 'nccl', timeoutMs: 30_000 });
  const memory = onDevice(new Float32Array(8), rank % 2);
  await group.allReduce(carrying(memory));
  if (rank === 0) breakNccl();
  const reduced = group.allReduce(carrying(memory)).then(
    () => null,
    (failure: CollectiveError) => failure,
  );
  const closed = closing ? group.close().catch(() => {}) : null;
  const error = await reduced;
  await (closed ?? group.close().catch(() => {}));
  return { code: error?.code, peers: error?.peers, what: error?.what };
}

/** Makes a group when the variable with the path of NCCL is wrong. Returns the error. */
export async function withoutLibrary(): Promise<string> {
  useDevice();
  process.env.RINGWISE_LIBNCCL = '/nowhere/libnccl.so';
  return refusal();
}

/** Makes a group on an NCCL that reports this version. Returns the error. */
export async function ofVersion(_rank: number, version: number): Promise<string> {
  useDevice();
  process.env.SOFTWARE_NCCL_VERSION = `${version}`;
  return refusal();
}

/** Tells whether a group reduces float8 if its devices report this compute capability. */
export function reducesFloat8(_rank: number, major: number): boolean {
  useDevice();
  process.env.RINGWISE_SOFTWARE_CUDA_MAJOR = `${major}`;
  return isReducibleByNccl('sum', 'float8_e4m3fn', 2);
}

async function refusal(): Promise<string> {
  try {
    const group = await init({ backend: 'nccl' });
    await group.close();
    return 'made';
  } catch (error) {
    return (error as Error).message;
  }
}

/** Returns which backend `auto` chooses without NCCL, and through which slots device memory passes there. */
export async function autoWithoutLibrary(rank: number, count: number): Promise<unknown> {
  useDevice();
  process.env.RINGWISE_LIBNCCL = '/nowhere/libnccl.so';
  const slots = slotsOfHost();
  const group = await init();
  const device = onDevice(new Float32Array(count).fill(rank + 1), rank % 2);
  group.allReduce(carrying(device)).fence();
  await group.allReduce(carrying(device), { op: 'avg' });
  const { backend } = group;
  await group.close();
  return { backend, device: [...new Set(floats(device))], slots };
}

/**
 * Starts to record the host memory that this process copies to and from devices, and whether it is registered
 * with the driver, which then needs no further copy.
 */
function slotsOfHost(): { readonly bytes: number; readonly isRegistered: boolean }[] {
  const addon = loadNative() as { DeviceLane: ReturnType<typeof loadNative>['DeviceLane'] };
  const all: { bytes: number; isRegistered: boolean }[] = [];
  addon.DeviceLane = class extends addon.DeviceLane {
    constructor(...given: ConstructorParameters<typeof addon.DeviceLane>) {
      super(...given);
      all.push({ bytes: given[1].length, isRegistered: this.isRegistered });
    }
  };
  return all;
}
