// Device memory for tests of the nccl backend (packages/testing/src/device.ts says on which device), and its twin: a
// backend that takes host memory and has the nccl backend work on copies on the device. The contract suite, which
// reads host memory, tests the nccl backend by this twin.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { deviceMemoryAddon, hasTestDevice, testDeviceOf, useTestDevice } from '@ringwise/testing';
import type { Backend, Operation } from '../../src/backend.ts';
import type { BackendFactory } from '../../src/backends/context.ts';
import { isReducibleByNccl, ncclBackend } from '../../src/backends/nccl/nccl.ts';
import { asBuffer, type BufferLike, type BufferView, bufferSymbol } from '../../src/group/buffer.ts';

export const hasDevice = hasTestDevice && existsSync(deviceMemoryAddon);

/** The functions of native/test/software_gpu/memory_addon.cc. */
interface Addon {
  readonly reserve: (device: number, bytes: number) => bigint;
  readonly write: (device: number, address: bigint, bytes: Uint8Array) => void;
  readonly read: (device: number, address: bigint, bytes: Uint8Array) => void;
  readonly keepBusy: (device: number, ms: number) => void;
  readonly batches: () => number;
  readonly registrations: () => readonly [number, number];
  readonly breakNccl: () => void;
  readonly stallNccl: (stalls: boolean) => void;
}
let addon: Addon | null = null;

/** Gives this process the device of the tests. Call it before anything opens the driver. */
export function useDevice(): void {
  useTestDevice();
  addon = createRequire(import.meta.url)(deviceMemoryAddon) as Addon;
}

/** Makes a device's default stream, on which the memory of these tests is ordered, busy for `ms` milliseconds. */
export const keepBusy = (device: number, ms: number): void => addon!.keepBusy(testDeviceOf(device), ms);

/** Returns how many groups of calls this process has made on the software NCCL. */
export const batches = (): number => addon!.batches();

/** Returns how often this process has registered memory with the software NCCL, and how many registrations remain. */
export const registrations = (): readonly [number, number] => addon!.registrations();

/** Makes the network of this process's software NCCL fail. */
export const breakNccl = (): void => addon!.breakNccl();

/** Makes the software NCCL of this process never finish an operation, as if it could not connect the ranks. */
export const stallNccl = (): void => addon!.stallNccl(true);

/** Device memory and the view of it that verbs take. */
export interface DeviceMemory {
  readonly view: BufferView;
  /** A new copy of the content on the host. */
  readonly bytes: Uint8Array;
}

// Freed memory is kept and used again, because freeing it on the device would wait for all work there.
const spare = new Map<string, bigint[]>();

function memoryLike(host: BufferView, device: number): DeviceMemory & { readonly release: () => void } {
  const { dtype, count } = host;
  const index = testDeviceOf(device);
  const from = bytesOf(host);
  const capacity = 2 ** Math.ceil(Math.log2(Math.max(from.length, 512)));
  const key = `${index}:${capacity}`;
  const address = spare.get(key)?.pop() ?? addon!.reserve(index, capacity);
  addon!.write(index, address, from);
  const handle = { address, owner: spare };
  return {
    view: { dtype, count, device: { kind: 'cuda', index }, host: null, handle },
    get bytes() {
      const copy = new Uint8Array(from.length);
      addon!.read(index, address, copy);
      return copy;
    },
    release: () => spare.set(key, [...(spare.get(key) ?? []), address]),
  };
}

const bytesOf = ({ host }: BufferView): Uint8Array =>
  new Uint8Array(host!.buffer, host!.byteOffset, host!.byteLength);

/** Wraps device memory in the form that the verbs take. */
export const carrying = ({ view }: DeviceMemory): BufferLike => ({ [bufferSymbol]: () => view });

/** Copies host memory to new memory on a device. */
export function onDevice(host: BufferLike, device = 0): DeviceMemory {
  return memoryLike(asBuffer(host), device);
}

export const twinBackend: BackendFactory = async (context) =>
  twinOf(await ncclBackend(context), context.localRank % 2);

function twinOf(inner: Backend, device: number): Backend {
  const { rank, size } = inner;
  const start: Backend['start'] = (operation, settle) => {
    if (!isForNccl(operation, size)) return inner.start(operation, settle);
    const moved = moveToDevice(operation, device);
    const running = inner.start(moved.operation, (error, source) => {
      moved.copyBack();
      settle(error, source);
    });
    // The twin's user reads host memory, for which a fence on the device is not enough, so offer no fence.
    return running && { wait: () => running.wait(), requestProgress: () => running.requestProgress?.() };
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

function isForNccl(operation: Operation, size: number): boolean {
  if (operation.verb === 'send' || operation.verb === 'recv') return false;
  if (!('op' in operation)) return true;
  const { dtype } = operation.verb === 'reduceScatter' ? operation.input : operation.buffer;
  return isReducibleByNccl(operation.op, dtype, size);
}

function moveToDevice(operation: Operation, device: number) {
  const copies: (() => void)[] = [];
  const moved: Record<string, unknown> = { ...operation };
  for (const key of ['buffer', 'input', 'output'] as const) {
    const view = (operation as { readonly [K in typeof key]?: BufferView | null })[key];
    if (!view) continue;
    const memory = memoryLike(view, device);
    moved[key] = memory.view;
    copies.push(() => {
      bytesOf(view).set(memory.bytes);
      memory.release();
    });
  }
  const copyBack = () => {
    for (const copy of copies) copy();
  };
  return { operation: moved as unknown as Operation, copyBack };
}
