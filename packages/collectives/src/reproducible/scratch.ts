// Scratch memory that a group's reproducible calls reuse, because new pages cost several times as much as the
// arithmetic. Keeps the buffer that was given back last, for each dtype.
import type { Backend } from '../backend.ts';
import type { DType } from '../dtype.ts';
import { type BufferView, elementsOf } from '../group/buffer.ts';

export class Scratch {
  readonly #alloc: Backend['alloc'];
  readonly #free = new Map<DType, BufferView>();
  /** The whole buffer of each view that is in use; a view may be only the beginning of its buffer. */
  readonly #wholes = new WeakMap<BufferView, BufferView>();

  constructor(alloc: Backend['alloc']) {
    this.#alloc = alloc;
  }

  /** Returns zeroed memory. The caller returns it with give(). */
  take(count: number, dtype: DType): BufferView {
    const free = this.#free.get(dtype);
    if (free === undefined || free.count < count) return this.#lent(this.#alloc(count, dtype));
    this.#free.delete(dtype);
    const host = elementsOf(free).subarray(0, count);
    new Uint8Array(host.buffer, host.byteOffset, host.byteLength).fill(0);
    return this.#lent({ ...free, count, host }, free);
  }

  /** Takes memory back for another call. The caller must not use it any more. */
  give(view: BufferView): void {
    const whole = this.#wholes.get(view);
    if (whole !== undefined) this.#free.set(view.dtype, whole);
  }

  #lent(view: BufferView, whole = view): BufferView {
    this.#wholes.set(view, whole);
    return view;
  }
}
