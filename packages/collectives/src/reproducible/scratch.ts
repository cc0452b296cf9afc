// Memory that the reproducible calls of a group use one after the other: to be given fresh pages costs several times
// the arithmetic. Of each dtype the last one given back is kept.
import type { Backend } from '../backend.ts';
import type { DType } from '../dtype.ts';
import { type BufferView, elementsOf } from '../group/buffer.ts';

export class Scratch {
  readonly #alloc: Backend['alloc'];
  readonly #free = new Map<DType, BufferView>();
  /** What a view that was lent is the beginning of. */
  readonly #wholes = new WeakMap<BufferView, BufferView>();

  constructor(alloc: Backend['alloc']) {
    this.#alloc = alloc;
  }

  /** Zeroed memory. */
  take(count: number, dtype: DType): BufferView {
    const free = this.#free.get(dtype);
    if (free === undefined || free.count < count) return this.#lent(this.#alloc(count, dtype));
    this.#free.delete(dtype);
    const host = elementsOf(free).subarray(0, count);
    new Uint8Array(host.buffer, host.byteOffset, host.byteLength).fill(0);
    return this.#lent({ ...free, count, host }, free);
  }

  /** For another call: nobody may use it any more. */
  give(view: BufferView): void {
    const whole = this.#wholes.get(view);
    if (whole !== undefined) this.#free.set(view.dtype, whole);
  }

  #lent(view: BufferView, whole = view): BufferView {
    this.#wholes.set(view, whole);
    return view;
  }
}
