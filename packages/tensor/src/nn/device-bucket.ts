// Memory on a device where the gradients of several parameters are averaged together. Distributed training
// fills and divides it by these members, so that all of it happens on the device, in the order of the stream
// that is in use. Large buckets lie where NCCL can use registered memory over NVLink.
import { keep, scope } from '../core/context.ts';
import { type BucketMemory, type BufferView, bufferSymbol } from '../core/protocol.ts';
import { allocateShareable } from '../core/storage.ts';
import { created, type Tensor } from '../core/tensor.ts';

class DeviceBucket implements BucketMemory {
  /** One dimension. */
  readonly #elements: Tensor;

  constructor(elements: Tensor) {
    this.#elements = keep(elements);
  }

  [bufferSymbol](): BufferView {
    return this.#elements[bufferSymbol]();
  }

  part(offset: number, count: number): DeviceBucket {
    return new DeviceBucket(this.#elements.narrow(0, offset, count));
  }

  clear(): void {
    this.#elements.zero_();
  }

  divide(divisor: number): void {
    this.#elements.div_(divisor);
  }

  isZero(): boolean {
    const elements = this.#elements;
    return elements.count === 0 || scope(() => elements.abs().max().item() === 0);
  }
}

/** Zeroed memory for `count` elements of gradients, of the dtype and on the device of `like`. */
export function deviceBucket({ dtype, device }: Tensor, count: number): BucketMemory {
  const bucket = new DeviceBucket(created(allocateShareable(dtype, count, device), [count]));
  bucket.clear();
  return bucket;
}
