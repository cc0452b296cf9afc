// Gives distributed training (@ringwise/ddp) access to a module's parameters, through structural types, without
// importing that package.
import { onBackwardEnd, runningBackward } from '../autograd/backward.ts';
import { fromHost } from '../core/creation.ts';
import type { HostArray } from '../core/dtype.ts';
import {
  type BucketMemory,
  type BufferView,
  bufferSymbol,
  type FrozenParam,
  type GradMemory,
  type GradParam,
  type StateBuffer,
} from '../core/protocol.ts';
import type { Tensor } from '../core/tensor.ts';
import { memoryView } from '../core/tensor-core.ts';
import { deviceBucket } from './device-bucket.ts';
import { parameter } from './parameter.ts';

class TensorGradParam implements GradParam {
  readonly name: string;
  readonly key: object;
  readonly #tensor: Tensor;
  readonly onGradReady: GradParam['onGradReady'];
  readonly bindGrad: (bucket: GradMemory) => void;
  readonly allocBucket: (count: number) => BucketMemory;
  readonly divideGrad: (divisor: number) => void;
  readonly readValue: () => ArrayBufferView;
  readonly dropGrad: () => void;
  readonly clone: () => TensorGradParam;
  readonly onBackwardEnd = onBackwardEnd;

  constructor(name: string, tensor: Tensor) {
    this.name = name;
    this.key = tensor;
    this.#tensor = tensor;
    this.onGradReady = (ready) => tensor.onGradReady(() => ready(runningBackward()));
    this.allocBucket = (count) => deviceBucket(tensor, count);
    this.divideGrad = (divisor) => void tensor.grad?.div_(divisor);
    this.readValue = () => tensor.dataSync();
    this.dropGrad = () => tensor.unbindGrad();
    this.clone = () => {
      const { dtype, shape } = tensor;
      return new TensorGradParam(name, parameter(fromHost(tensor.dataSync().slice(), shape, { dtype })));
    };
    // Tensor.bindGrad refuses memory of another type, size or device.
    this.bindGrad = (bucket) => tensor.bindGrad((bucket.host as HostArray | null) ?? bucket);
  }

  get shape(): readonly number[] {
    return this.#tensor.shape;
  }

  get requiresGrad(): boolean {
    return this.#tensor.requiresGrad;
  }

  get keepsZeros(): boolean {
    return this.#tensor.isGradZeroed;
  }

  get value(): BufferView {
    return memoryView(this.#tensor);
  }

  get grad(): BufferView | null {
    return this.#tensor.grad?.[bufferSymbol]() ?? null;
  }
}

class TensorState implements StateBuffer {
  readonly name: string;
  readonly readValue: () => ArrayBufferView;
  readonly #tensor: Tensor;

  constructor(name: string, tensor: Tensor) {
    this.name = name;
    this.#tensor = tensor;
    this.readValue = () => tensor.dataSync();
  }

  /** The memory of the value; made at each access, so that it names the stream that is in use then. */
  get value(): BufferView {
    return memoryView(this.#tensor);
  }
}

class TensorFrozenParam extends TensorState implements FrozenParam {
  readonly key: object;
  readonly shape: readonly number[];
  readonly onGradReady: (ready: () => void) => () => void;

  constructor(name: string, tensor: Tensor) {
    super(name, tensor);
    this.key = tensor;
    this.shape = tensor.shape;
    this.onGradReady = (ready) => tensor.onTrained(ready);
  }
}

/** Returns a GradParam for each parameter that requires a gradient. */
export function gradParams(named: Iterable<[name: string, parameter: Tensor]>): GradParam[] {
  return Array.from(named)
    .filter(([, parameter]) => parameter.requiresGrad)
    .map(([name, parameter]) => new TensorGradParam(name, parameter));
}

/** Returns a FrozenParam for each parameter that requires no gradient. */
export function frozenParams(named: Iterable<[name: string, parameter: Tensor]>): FrozenParam[] {
  return Array.from(named)
    .filter(([, parameter]) => !parameter.requiresGrad)
    .map(([name, parameter]) => new TensorFrozenParam(name, parameter));
}

/** Returns a StateBuffer for each buffer. */
export function stateBuffers(named: Iterable<[name: string, buffer: Tensor]>): StateBuffer[] {
  return Array.from(named, ([name, buffer]) => new TensorState(name, buffer));
}
