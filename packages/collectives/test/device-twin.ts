// Groups on the software device (native/test/software_gpu), for tests of the nccl backend. A twin of it takes memory of the
// host and does everything on copies on the device: so the contract suite, which looks at its results, runs there.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Backend, Operation } from '../src/backend.ts';
import { isReducibleByNccl, ncclBackend } from '../src/backends/nccl.ts';
import type { BufferView } from '../src/buffer.ts';
import type { BackendFactory } from '../src/registry.ts';

const folder = new URL('../../../native/build/Release/', import.meta.url);
const library = fileURLToPath(new URL('libsoftware_cuda.so', folder));
const addonPath = fileURLToPath(new URL('software_memory.node', folder));

export const isThere = existsSync(library) && existsSync(addonPath);

interface Addon {
  readonly allocate: (device: number, bytes: number) => ArrayBuffer;
  readonly addressOf: (memory: ArrayBuffer) => bigint;
  readonly batches: () => number;
}
let addon: Addon | null = null;

/** From now on this process's CUDA devices are software. To be called before anything opens the driver. */
export function useSoftwareDevice(): void {
  process.env.RINGWISE_LIBCUDA = library;
  process.env.RINGWISE_LIBNCCL = library;
  addon = createRequire(import.meta.url)(addonPath) as Addon;
}

/** The groups of calls that NCCL has had from this process. */
export const batches = (): number => addon!.batches();

/** Memory of a device that JavaScript sees. */
export interface DeviceMemory {
  readonly bytes: Uint8Array;
  readonly view: BufferView;
}

// Kept for ever and used again: to give memory back, the device waits for all its work.
const spare = new Map<string, ArrayBuffer[]>();

function memoryLike(view: BufferView, device: number): DeviceMemory & { readonly release: () => void } {
  const { dtype, count, host } = view;
  const length = host?.byteLength ?? 0;
  const capacity = 2 ** Math.ceil(Math.log2(Math.max(length, 512)));
  const key = `${device}:${capacity}`;
  const memory = spare.get(key)?.pop() ?? addon!.allocate(device, capacity);
  const handle = { address: addon!.addressOf(memory), owner: memory };
  return {
    bytes: new Uint8Array(memory, 0, length),
    view: { dtype, count, device: { kind: 'cuda', index: device }, host: null, handle },
    release: () => spare.set(key, [...(spare.get(key) ?? []), memory]),
  };
}

/** A copy on a device of what a typed array has. */
export function onDevice(array: Float32Array, device = 0): DeviceMemory {
  const host: BufferView = {
    dtype: 'float32',
    count: array.length,
    device: { kind: 'cpu', index: 0 },
    host: array,
    handle: null,
  };
  const memory = memoryLike(host, device);
  memory.bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  return memory;
}

export const twinBackend: BackendFactory = async (context) =>
  twinOf(await ncclBackend(context), context.localRank % 2);

function twinOf(inner: Backend, device: number): Backend {
  const { rank, size } = inner;
  const start: Backend['start'] = (operation, settle) => {
    if (!isForNccl(operation)) return inner.start(operation, settle);
    const moved = moveToDevice(operation, device);
    const running = inner.start(moved.operation, (error, source) => {
      moved.copyBack();
      settle(error, source);
    });
    // A fence on the device is not what looks at memory of the host waits for.
    return running && { wait: () => running.wait(), urge: () => running.urge?.() };
  };
  return {
    contract: 1,
    name: 'twin',
    rank,
    size,
    supports: { ...inner.supports, devices: ['cpu'] },
    start,
    ...(inner.together && { together: inner.together }),
    run: (operation) => {
      let failure: unknown;
      let source: number | undefined;
      start(operation, (error, from) => {
        failure = error;
        source = from;
      })?.wait();
      if (failure !== undefined) throw failure;
      return source;
    },
    alloc: inner.alloc,
    abort: inner.abort,
    close: inner.close,
  };
}

function isForNccl(operation: Operation): boolean {
  if (operation.verb === 'send' || operation.verb === 'recv') return false;
  if (!('op' in operation)) return true;
  const { dtype } = operation.verb === 'reduceScatter' ? operation.input : operation.buffer;
  return isReducibleByNccl(operation.op, dtype);
}

function moveToDevice(operation: Operation, device: number) {
  const copies: (() => void)[] = [];
  const moved: Record<string, unknown> = { ...operation };
  for (const key of ['buffer', 'input', 'output'] as const) {
    const view = (operation as { readonly [K in typeof key]?: BufferView | null })[key];
    if (!view) continue;
    const { buffer, byteOffset, byteLength } = view.host!;
    const host = new Uint8Array(buffer, byteOffset, byteLength);
    const memory = memoryLike(view, device);
    memory.bytes.set(host);
    moved[key] = memory.view;
    copies.push(() => {
      host.set(memory.bytes);
      memory.release();
    });
  }
  const copyBack = () => {
    for (const copy of copies) copy();
  };
  return { operation: moved as unknown as Operation, copyBack };
}
