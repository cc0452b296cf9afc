// A gradient bucket in device memory. Distributed training clears, divides and tests it with the members here, so
// that the work runs on the device, on the current stream. Large buckets use shareable memory, which NCCL can
// register and access over NVLink.
import { keep, scope } from '../core/context.ts';
import { allocateShareable } from '../core/memory/storage.ts';
import { type BucketMemory, type BufferView, bufferSymbol } from '../core/protocol.ts';
import { created, type Tensor } from '../core/tensor.ts';

class DeviceBucket implements BucketMemory {
  /** All elements, as a tensor of one dimension. */
  readonly #elements: Tensor;

  constructor(elements: Tensor) {
    this.#elements = keep(elements);
  }

  [bufferSymbol](): BufferView {
    return this.#elements[bufferSymbol]();
  }

  /** Returns a bucket over `count` elements from `offset` of this one, in the same memory. */
  part(offset: number, count: number): DeviceBucket {
    return new DeviceBucket(this.#elements.narrow(0, offset, count));
  }

  clear(): void {
    this.#elements.zero_();
  }

  divide(divisor: number): void {
    this.#elements.div_(divisor);
  }

  /** Returns whether all elements are 0. Waits for the device. */
  isZero(): boolean {
    const elements = this.#elements;
    return elements.count === 0 || scope(() => elements.abs().max().item() === 0);
  }
}

/** Returns a bucket of `count` zeros, with the dtype and device of the given tensor. */
export function deviceBucket({ dtype, device }: Tensor, count: number): BucketMemory {
  const bucket = new DeviceBucket(created(allocateShareable(dtype, count, device), [count]));
  bucket.clear();
  return bucket;
}
