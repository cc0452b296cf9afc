// A module's parameters as distributed training sees them, by shape and without importing it.
import { onBackwardEnd } from '../autograd/backward.ts';
import type { HostArray } from '../dtype.ts';
import {
  type BucketMemory,
  type BufferView,
  bufferSymbol,
  type GradMemory,
  type GradParam,
} from '../protocol.ts';
import type { Tensor } from '../tensor.ts';
import { deviceBucket } from './device-bucket.ts';

class TensorGradParam implements GradParam {
  readonly name: string;
  readonly #tensor: Tensor;
  readonly onGradReady: (ready: () => void) => () => void;
  readonly bindGrad: (bucket: GradMemory) => void;
  readonly allocBucket: (count: number) => BucketMemory;
  readonly divideGrad: (divisor: number) => void;
  readonly readValue: () => ArrayBufferView;
  readonly dropGrad: () => void;
  readonly onBackwardEnd = onBackwardEnd;

  constructor(name: string, tensor: Tensor) {
    this.name = name;
    this.#tensor = tensor;
    this.onGradReady = (ready) => tensor.onGradReady(ready);
    this.allocBucket = (count) => deviceBucket(tensor, count);
    this.divideGrad = (divisor) => void tensor.grad?.div_(divisor);
    this.readValue = () => tensor.dataSync();
    this.dropGrad = () => tensor.unbindGrad();
    // Tensor.bindGrad refuses memory of another type, size or device.
    this.bindGrad = (bucket) => tensor.bindGrad((bucket.host as HostArray | null) ?? bucket);
  }

  get shape(): readonly number[] {
    return this.#tensor.shape;
  }

  get value(): BufferView {
    return this.#tensor[bufferSymbol]();
  }

  get grad(): BufferView | null {
    return this.#tensor.grad?.[bufferSymbol]() ?? null;
  }
}

/** One GradParam for each parameter that requires a gradient. */
export function gradParams(named: Iterable<[name: string, parameter: Tensor]>): GradParam[] {
  return Array.from(named)
    .filter(([, parameter]) => parameter.requiresGrad)
    .map(([name, parameter]) => new TensorGradParam(name, parameter));
}
