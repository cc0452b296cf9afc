// Memory that tensors, saved values of the tape and gradients share by counting references. Memory that nobody
// holds any more goes to a free list by exact size, because a training loop asks for the same sizes again and
// again; the list never holds more bytes than were in use at the peak.
//
// A Storage object lives as long as its Memory: the free list keeps the object, so that registering with the
// collector is paid once per piece of memory and not once per operation.
import { kernels } from './backends/index.ts';
import { type DType, dtypes, bytesOf as elementBytes, type HostArray } from './dtype.ts';
import type { Memory, Strided } from './kernels.ts';
import { noteBirth, noteEnd } from './leaks.ts';

let liveCount = 0;
let liveBytes = 0;
let peakBytes = 0;
let cachedBytes = 0;
let allocations = 0;

const bytesOf = (memory: Memory): number => memory.count * elementBytes(memory.dtype);

// Holds the memory and not the storage, which would keep it alive for ever.
const collected = new FinalizationRegistry<Memory>((memory) => {
  liveCount--;
  liveBytes -= bytesOf(memory);
  noteEnd(memory);
  kernels().free(memory);
});

export class Storage {
  readonly memory: Memory;
  /** All of it, one element behind the other: what kernels take. */
  readonly dense: Strided;
  /** Counts what was written in place, so that backward notices when a value that it saved is no longer there. */
  version = 0;
  /** Tensors and tape entries that hold this memory. At 0 it may be given to somebody else at once. */
  refs = 1;
  readonly bytes: number;
  /** Where it waits for reuse; null: it is adopted, and never reused. */
  readonly #freeList: Storage[] | null;

  constructor(memory: Memory, freeList: Storage[] | null) {
    this.memory = memory;
    this.dense = { memory, offset: 0, strides: null };
    this.bytes = bytesOf(memory);
    this.#freeList = freeList;
    collected.register(this, memory, this);
  }

  retain(): this {
    this.refs++;
    return this;
  }

  release(): void {
    if (--this.refs > 0) return;
    const { bytes } = this;
    liveCount--;
    liveBytes -= bytes;
    noteEnd(this.memory);
    if (this.#freeList === null) {
      destroy(this);
      return;
    }
    if (cachedBytes + bytes > peakBytes) emptyCache();
    this.#freeList.push(this);
    cachedBytes += bytes;
  }
}

/** By size. Lists stay when they are empty: storages in use know where they will go. */
const freeLists = Object.fromEntries(dtypes.map((dtype) => [dtype, new Map()])) as Record<
  DType,
  Map<number, Storage[]>
>;

function freeListOf(dtype: DType, count: number): Storage[] {
  const lists = freeLists[dtype];
  let list = lists.get(count);
  if (list === undefined) {
    list = [];
    lists.set(count, list);
  }
  return list;
}

function destroy(storage: Storage): void {
  collected.unregister(storage);
  kernels().free(storage.memory);
}

function countLive(bytes: number): void {
  liveCount++;
  liveBytes += bytes;
  if (liveBytes > peakBytes) peakBytes = liveBytes;
}

/** Memory with one reference and whatever was in it before. */
export function allocate(dtype: DType, count: number): Storage {
  const freeList = freeListOf(dtype, count);
  const cached = freeList.pop();
  if (cached !== undefined) {
    cachedBytes -= cached.bytes;
    cached.refs = 1;
    countLive(cached.bytes);
    noteBirth(cached.memory, cached.bytes);
    return cached;
  }
  allocations++;
  const storage = new Storage(kernels().alloc(dtype, count), freeList);
  countLive(storage.bytes);
  noteBirth(storage.memory, storage.bytes);
  return storage;
}

/** Memory over an array that the caller owns; it is never reused for anything else. */
export function adopt(dtype: DType, array: HostArray): Storage {
  const storage = new Storage(kernels().adopt(dtype, array), null);
  countLive(storage.bytes);
  noteBirth(storage.memory, storage.bytes);
  return storage;
}

const keptAlive = new WeakMap<HostArray, Storage>();

/** `count` elements from `offset` as a new typed array, which keeps the collector away from the storage. */
export function hostView(storage: Storage, offset: number, count: number): HostArray {
  const view = storage.memory.host.subarray(offset, offset + count);
  keptAlive.set(view, storage);
  return view;
}

export interface MemoryUse {
  /** Pieces of memory in use. Views of one piece count once. */
  readonly tensors: number;
  /** Bytes in use. */
  readonly bytes: number;
  /** The most bytes that were in use at once. */
  readonly peakBytes: number;
  /** Bytes kept for reuse, not counted in `bytes`. */
  readonly cachedBytes: number;
  /** How often memory was asked of the system since the process began. A training loop soon asks for no more. */
  readonly allocations: number;
}

/** Tensor memory of this process, counted exactly. */
export const memory = (): MemoryUse => ({
  tensors: liveCount,
  bytes: liveBytes,
  peakBytes,
  cachedBytes,
  allocations,
});

/** Gives memory that is kept for reuse back to the system. */
export function emptyCache(): void {
  for (const lists of Object.values(freeLists)) {
    for (const list of lists.values()) {
      for (const storage of list) destroy(storage);
      list.length = 0;
    }
  }
  cachedBytes = 0;
}
