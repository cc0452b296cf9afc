// Helpers for BufferViews: arguments for the verbs of a group, broadcasts, copies, and a bucket's host memory.
import {
  asBuffer,
  type BufferCarrier,
  type BufferView,
  bufferSymbol,
  elementsOf,
  type Group,
  overlap,
  type Work,
} from '@ringwise/collectives';
import type { BucketMemory } from '../wrapper/grad-param.ts';
import { divide } from './scale.ts';

/** Wraps a view as an argument for the verbs of a group. */
export function carrier(view: BufferView): BufferCarrier {
  return { [bufferSymbol]: () => view };
}

/**
 * Wraps a parameter's value as an argument. Drops `readOnly`: values are written between steps on purpose,
 * even if an autograd records operations.
 * @internal
 */
export function valueCarrier(value: BufferView): BufferCarrier {
  const { dtype, count, device, host, handle } = value;
  return carrier({ dtype, count, device, host, handle, written: () => value.written?.() });
}

/**
 * Starts to broadcast from `root`: all host memory in one call, and all device memory in another, whose fence
 * makes only the stream wait.
 */
export function broadcasts(carriers: readonly BufferCarrier[], group: Group, root: number): Work[] {
  if (group.size === 1) return [];
  const near = carriers.filter((each) => asBuffer(each).host !== null);
  const far = carriers.filter((each) => !near.includes(each));
  return [near, far].filter((list) => list.length > 0).map((list) => group.broadcast(list, { root }));
}

/**
 * Divides state buffers into lists in which no two share memory, because a verb refuses those in one call. If none
 * share memory, all are in one list.
 */
export function apart<T extends { readonly value: BufferView }>(buffers: readonly T[]): T[][] {
  const lists: T[][] = [];
  for (const buffer of buffers) {
    const free = lists.find((list) => !list.some((other) => overlap(buffer.value, other.value)));
    if (free === undefined) lists.push([buffer]);
    else free.push(buffer);
  }
  return lists;
}

/** Copies between host memory of the same dtype and count. */
export function copy(from: BufferView, to: BufferView): void {
  elementsOf(to).set(elementsOf(from) as never);
}

/** Returns a view of part of a buffer in host memory. */
export function slice(view: BufferView, offset: number, count: number): BufferView {
  return { ...view, count, host: elementsOf(view).subarray(offset, offset + count) };
}

/** Returns whether both views begin at the same address. */
export function beginsAtSameAddress(a: BufferView, b: BufferView): boolean {
  if (a.host === null || b.host === null) {
    return a.device.index === b.device.index && a.handle?.address === b.handle?.address;
  }
  return a.host.buffer === b.host.buffer && a.host.byteOffset === b.host.byteOffset;
}

/** Returns the bytes of host memory, without a copy. */
export function bytesOf(host: ArrayBufferView): Uint8Array {
  return new Uint8Array(host.buffer, host.byteOffset, host.byteLength);
}

/** Host memory of a bucket. */
export class HostMemory implements BucketMemory {
  readonly #view: BufferView;

  constructor(view: BufferView) {
    this.#view = view;
  }

  [bufferSymbol](): BufferView {
    return this.#view;
  }

  part(offset: number, count: number): HostMemory {
    return new HostMemory(slice(this.#view, offset, count));
  }

  clear(): void {
    (elementsOf(this.#view) as Float32Array).fill(0);
  }

  divide(divisor: number): void {
    divide(this.#view, divisor);
  }

  isZero(): boolean {
    return (elementsOf(this.#view) as Float32Array).every((value) => value === 0);
  }
}
