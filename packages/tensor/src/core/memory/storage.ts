// Memory that tensors, saved values of the tape and gradients share by counting references. Released memory goes to a
// free list by exact size, because a training loop asks for the same sizes again and again. The list never holds more
// bytes than were in use at the peak.
//
// A Storage object lives as long as its Memory: the free list keeps the object, so that registering with the
// collector is paid once per piece of memory and not once per operation.
import { deviceControl, kernels } from '../../backends/index.ts';
import type { Memory, Strided } from '../../backends/operands.ts';
import { onShortage } from '../../backends/shortage.ts';
import { capturing } from '../../device/capture.ts';
import { cudaIndex, type Device, deviceOf } from '../../device/device.ts';
import { otherDeviceInStep, outOfDeviceMemory, outOfHostMemory } from '../../errors.ts';
import { type DType, dtypeInfo, dtypes, bytesOf as elementBytes, type HostArray } from '../dtype.ts';
import { type Claim, DeviceMemory } from './device-memory.ts';
import { Growth } from './growth.ts';
import { noteBirth, noteEnd } from './leaks.ts';

const bySize = (): Record<DType, Map<number, Storage[]>> =>
  Object.fromEntries(dtypes.map((dtype) => [dtype, new Map()])) as never;

/** Counts the memory of one device, and holds its released memory for reuse. */
class Pool {
  readonly device: Device;
  liveCount = 0;
  liveBytes = 0;
  peakBytes = 0;
  cachedBytes = 0;
  /**
   * Whether released memory returns to the kernel set at once. The kernel set distinguishes streams and captured steps;
   * the free lists do not.
   */
  isDirect = false;
  /** Number of allocations by the kernel set. */
  allocations = 0;
  readonly growth = new Growth();
  /** Null on the host, where the garbage collector counts the memory itself. */
  readonly onDevice: DeviceMemory | null;
  /** Free lists by size. Empty lists stay, because storages in use refer to them. */
  readonly #freeLists = bySize();
  /** Free lists of pinned memory, which copies may still use. */
  readonly #pinnedLists = bySize();

  constructor(device: Device) {
    this.device = device;
    this.onDevice = device === 'cpu' ? null : new DeviceMemory(device);
  }

  freeListOf(dtype: DType, count: number, isPinned = false): Storage[] {
    const lists = (isPinned ? this.#pinnedLists : this.#freeLists)[dtype];
    let list = lists.get(count);
    if (list === undefined) {
      list = [];
      lists.set(count, list);
    }
    return list;
  }

  countLive(bytes: number): void {
    this.liveCount++;
    this.liveBytes += bytes;
    if (this.liveBytes > this.peakBytes) this.peakBytes = this.liveBytes;
    const { growth, onDevice } = this;
    if (onDevice !== null && this.liveBytes >= onDevice.tellAt) onDevice.tell(this.liveBytes);
    if (this.liveCount >= growth.atCount || this.liveBytes >= growth.atBytes)
      growth.look(this.liveCount, this.liveBytes);
  }

  countDead(bytes: number): void {
    this.liveCount--;
    this.liveBytes -= bytes;
  }

  empty(): void {
    for (const lists of [...Object.values(this.#freeLists), ...Object.values(this.#pinnedLists)]) {
      for (const list of lists.values()) {
        for (const storage of list) destroy(storage, this);
        list.length = 0;
      }
    }
    this.cachedBytes = 0;
  }
}

const hostPool = new Pool('cpu');
const pools = new Map<Device, Pool>([['cpu', hostPool]]);

function poolOf(device: Device): Pool {
  if (device === 'cpu') return hostPool;
  let pool = pools.get(device);
  if (pool === undefined) {
    pool = new Pool(device);
    pools.set(device, pool);
  }
  return pool;
}

const collected = new FinalizationRegistry<Claim>((claim) => freeLost(claim));

/** Frees memory whose storage was garbage-collected without being released, unless it has already been freed. */
function freeLost(claim: Claim): void {
  const pool = poolOf(claim.device);
  if (pool.onDevice?.delete(claim) === false) return;
  pool.countDead(claim.bytes);
  pool.growth.ended(claim);
  noteEnd(claim);
  kernels().free(claim);
  pool.onDevice?.tell(pool.liveBytes);
}

// Structured clone would turn a tensor into a plain object without methods and without an error, which objects sent to
// other ranks or threads would show only where they are used. It refuses symbols, and its error shows their text.
const tensorsCannotBeCloned = Symbol('a tensor; send its toArray() or dataSync()');

export class Storage {
  /** Before the other fields, so that nothing is copied. */
  readonly refusal = tensorsCannotBeCloned;
  readonly memory: Memory;
  /** All elements, dense, as an operand of kernels. */
  readonly dense: Strided;
  /** Counts in-place writes, so that backward detects that a saved value was overwritten. */
  version = 0;
  /** Number of tensors, tape entries and gradients that hold this memory. At 0 it may be reused at once. */
  refs = 1;
  readonly bytes: number;
  /** Represents the memory in records that must not keep it alive. */
  readonly claim: Claim;
  readonly #pool: Pool;
  /** The list to which the storage returns; null for adopted and shareable memory, which no list holds. */
  readonly #freeList: Storage[] | null;

  constructor(memory: Memory, pool: Pool, freeList: Storage[] | null) {
    this.memory = memory;
    this.#pool = pool;
    this.dense = { memory, offset: 0, strides: null };
    const { dtype, count, device, handle } = memory;
    this.bytes = count * elementBytes(dtype);
    this.claim = { dtype, count, bytes: this.bytes, device, handle };
    this.#freeList = freeList;
    collected.register(this, this.claim, this);
    pool.onDevice?.add(memory, this.claim);
  }

  retain(): this {
    this.refs++;
    return this;
  }

  release(): void {
    if (--this.refs > 0) return;
    const { bytes } = this;
    const pool = this.#pool;
    pool.countDead(bytes);
    pool.growth.ended(this.claim);
    noteEnd(this.claim);
    if (this.#freeList === null || pool.isDirect) {
      destroy(this, pool);
      return;
    }
    if (pool.cachedBytes + bytes > pool.peakBytes) pool.empty();
    this.#freeList.push(this);
    pool.cachedBytes += bytes;
  }
}

function destroy(storage: Storage, pool: Pool): void {
  collected.unregister(storage);
  pool.onDevice?.delete(storage.claim);
  kernels().free(storage.claim);
}

/** Allocates from the kernel set, with an error of this package if the host has too little memory. */
function allocFromKernels(dtype: DType, count: number, device: Device): Memory {
  try {
    return kernels().alloc(dtype, count, device);
  } catch (error) {
    // A RangeError means that an ArrayBuffer of this size cannot be allocated.
    throw error instanceof RangeError ? outOfHostMemory(dtype, count, error) : error;
  }
}

/** Allocates memory. If a device has not enough, makes room for it. */
function take(alloc: typeof allocFromKernels, dtype: DType, count: number, device: Device): Memory {
  try {
    return alloc(dtype, count, device);
  } catch (error) {
    const { onDevice } = poolOf(device);
    if (onDevice === null || !isShortage(error) || capturing() !== null) throw error;
    return takeFromFull(onDevice, () => alloc(dtype, count, device));
  }
}

/** Calls `make`, which allocates memory of a device itself. If there is not enough, frees memory and calls it again. */
export function makeWithRoom<T>(device: Device, make: () => T): T {
  try {
    return make();
  } catch (error) {
    const { onDevice } = poolOf(device);
    if (onDevice === null || !isShortage(error) || capturing() !== null) throw error;
    return takeFromFull(onDevice, make);
  }
}

onShortage((shortage, call) => {
  // The message is the allocator's, which names its device.
  const full = [...pools.values()].find(({ device }) => (shortage as Error).message.includes(` ${device};`));
  if (!full?.onDevice || capturing() !== null) throw shortage;
  takeFromFull(full.onDevice, call);
});

const isShortage = (error: unknown): error is Error =>
  (error as { code?: string }).code === 'ERR_TENSOR_MEMORY';

/** Allocates after freeing cached memory; if that is too little, after freeing memory that the program has lost. */
function takeFromFull<T>(onDevice: DeviceMemory, alloc: () => T): T {
  const freeCached = emptyCache;
  const freeAllLost = (): void => {
    for (const claim of onDevice.lost()) freeLost(claim);
  };
  let shortage: Error | undefined;
  for (const makeRoom of [freeCached, freeAllLost]) {
    makeRoom();
    try {
      return alloc();
    } catch (error) {
      if (!isShortage(error)) throw error;
      shortage = error;
    }
  }
  throw outOfDeviceMemory(shortage!, onDevice.largest());
}

/** Throws if a step of another device is being captured. */
function checkCaptured(device: Device): void {
  const capture = capturing();
  if (capture !== null && capture.device !== device) throw otherDeviceInStep(device, capture.device);
}

/** Allocates memory with one reference. Its elements are not initialised. */
export function allocate(dtype: DType, count: number, device: Device = 'cpu'): Storage {
  checkCaptured(device);
  const pool = device === 'cpu' ? hostPool : poolOf(device);
  const freeList = pool.freeListOf(dtype, count);
  return (
    reused(freeList.pop(), pool) ??
    born(new Storage(take(allocFromKernels, dtype, count, device), pool, freeList), pool)
  );
}

/**
 * Allocates memory of a CUDA device that collectives can use in place. When released, it returns to the kernel set.
 */
export function allocateShareable(dtype: DType, count: number, device: Device): Storage {
  checkCaptured(device);
  const pool = poolOf(device);
  const memory = take(deviceControl().allocShareable, dtype, count, device);
  return born(new Storage(memory, pool, null), pool);
}

/** Allocates an array in pinned memory, which returns to a cache when the array is collected and no copy uses it. */
export const pinnedArray = (dtype: DType, count: number): HostArray =>
  new dtypeInfo[dtype].array(deviceControl().pin(count * elementBytes(dtype)), 0, count);

/** Allocates pinned host memory, which devices copy directly. Throws ERR_TENSOR_DEVICE without CUDA. */
export function allocatePinned(dtype: DType, count: number): Storage {
  const control = deviceControl();
  const freeList = hostPool.freeListOf(dtype, count, true);
  const idle = freeList.findIndex(({ memory }) => control.isIdle(memory.host.buffer));
  if (idle >= 0) return reused(freeList.splice(idle, 1)[0], hostPool)!;
  const memory = kernels().adopt(dtype, pinnedArray(dtype, count));
  return born(new Storage(memory, hostPool, freeList), hostPool);
}

function reused(cached: Storage | undefined, pool: Pool): Storage | null {
  if (cached === undefined) return null;
  pool.cachedBytes -= cached.bytes;
  cached.refs = 1;
  return used(cached, pool);
}

/** Counts a storage that is new. */
function born(storage: Storage, pool: Pool): Storage {
  pool.allocations++;
  return used(storage, pool);
}

/** Counts a storage that is now in use, new or reused. */
function used(storage: Storage, pool: Pool): Storage {
  pool.countLive(storage.bytes);
  pool.growth.born(storage);
  noteBirth(storage.claim, storage.bytes);
  return storage;
}

export const isPinned = (memory: Memory): boolean =>
  memory.device === 'cpu' && (kernels().cuda?.isPinned(memory.host.buffer) ?? false);

/** Makes a storage over an array that the caller owns; the memory is never reused. */
export const adopt = (dtype: DType, array: HostArray): Storage => adoptMemory(kernels().adopt(dtype, array));

/** Makes a storage that takes ownership of memory, which is never reused. */
export function adoptMemory(memory: Memory): Storage {
  const pool = poolOf(memory.device);
  return used(new Storage(memory, pool, null), pool);
}

/** From now on, memory of the device goes back to the kernel set when it is freed. @internal */
export function useDirectly(device: Device): void {
  const pool = poolOf(device);
  if (pool.isDirect) return;
  pool.isDirect = true;
  pool.empty();
}

const keptAlive = new WeakMap<HostArray, Storage>();

/**
 * Returns `count` elements from `offset` as a new typed array. The collector does not take the storage before the
 * array, but the array does not count as a reference: once the storage is released, its memory may be reused.
 */
export function hostView(storage: Storage, offset: number, count: number): HostArray {
  const view = storage.memory.host.subarray(offset, offset + count);
  keptAlive.set(view, storage);
  return view;
}

/** Memory of tensors in use, as memory() reports it. */
export interface MemoryUse {
  /** Pieces of memory in use. Views of one piece count once. */
  readonly tensors: number;
  /** Bytes in use. */
  readonly bytes: number;
  /** The maximum number of bytes in use at once. */
  readonly peakBytes: number;
  /** Bytes kept for reuse, not counted in `bytes`. */
  readonly cachedBytes: number;
  /**
   * Number of allocations that no free list served. A training loop soon makes no more, except on a device that has
   * streams or captured steps: its memory is reused outside of these lists.
   */
  readonly allocations: number;
  /** Bytes that are allocated from the device, in use or not; for the host, `bytes` + `cachedBytes`. */
  readonly reservedBytes: number;
  /** Bytes of pinned host memory for copies to and from the device; 0 for the host. */
  readonly pinnedBytes: number;
}

/** Returns the use of tensor memory by this thread on one device, by default the host. Counted exactly. */
export function memory(device = 'cpu'): MemoryUse {
  const pool = poolOf(deviceOf(device));
  const { liveCount, liveBytes, peakBytes, cachedBytes, allocations } = pool;
  const use = { tensors: liveCount, bytes: liveBytes, peakBytes, cachedBytes, allocations };
  // A device that never gave memory may not be there.
  if (pool === hostPool || peakBytes === 0)
    return { ...use, reservedBytes: liveBytes + cachedBytes, pinnedBytes: 0 };
  return { ...use, ...deviceControl().memoryUse(cudaIndex(pool.device)) };
}

/** Returns cached free memory to the system, on all devices. */
export function emptyCache(): void {
  for (const pool of pools.values()) {
    pool.empty();
    // A device that never gave memory may not be there.
    if (pool !== hostPool && pool.peakBytes > 0) kernels().trim(pool.device);
  }
}

/** Blocks until everything that was started on a device has ended. Not needed before a result is read, which waits. */
export const synchronize = (device: string): void => kernels().synchronize(deviceOf(device));
