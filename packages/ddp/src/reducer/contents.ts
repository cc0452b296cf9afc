// A bucket as a hook sees it. Device memory can be passed to the group; accessing its elements throws an
// error that says so.
import { type BufferView, bufferSymbol, elementsOf, type TypedArray } from '@ringwise/collectives';
import { hookNeedsHost } from '../errors.ts';
import type { BucketMemory, GradParam } from '../wrapper/grad-param.ts';
import type { BucketGradient, GradBucket } from './hook.ts';

interface Part {
  readonly param: Pick<GradParam, 'name' | 'shape'>;
  readonly view: BufferView;
}

export class Contents implements GradBucket {
  readonly index: number;
  readonly isLast: boolean;
  readonly label: string;
  readonly dtype: GradBucket['dtype'];
  readonly gradients: readonly BucketGradient[];
  readonly #memory: BucketMemory;
  readonly #elements: Elements;

  /** `model` is the model's name for the label. */
  constructor(index: number, isLast: boolean, model: string, memory: BucketMemory, parts: readonly Part[]) {
    const view = memory[bufferSymbol]();
    this.label = `ddp bucket ${index} of ${model}`;
    this.index = index;
    this.isLast = isLast;
    this.dtype = view.dtype;
    this.gradients = parts.map((part) => new Gradient(part));
    this.#memory = memory;
    this.#elements = new Elements(view);
  }

  get data(): TypedArray {
    return this.#elements.get();
  }

  [bufferSymbol](): BufferView {
    return this.#memory[bufferSymbol]();
  }
}

class Gradient implements BucketGradient {
  readonly name: string;
  readonly shape: readonly number[];
  readonly #elements: Elements;

  constructor({ param, view }: Part) {
    this.name = param.name;
    this.shape = param.shape ?? [view.count];
    this.#elements = new Elements(view);
  }

  get data(): TypedArray {
    return this.#elements.get();
  }
}

/**
 * The elements of a view; get() throws for device memory. The array is made once, because hooks access it in
 * loops.
 */
class Elements {
  readonly #array: TypedArray | null;
  readonly #device: string;

  constructor(view: BufferView) {
    this.#array = view.host === null ? null : (elementsOf(view) as TypedArray);
    this.#device = `${view.device.kind}:${view.device.index}`;
  }

  get(): TypedArray {
    if (this.#array === null) throw hookNeedsHost(this.#device);
    return this.#array;
  }
}
