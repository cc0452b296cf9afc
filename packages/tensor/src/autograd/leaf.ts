// The gradient of a tensor that the user made, or of a result for which retainGrad was called. It stays after backward,
// may be stored in memory of another owner (a bucket of a reducer), and calls its listeners when it is final.
import { kernels } from '../backends/index.ts';
import type { DType } from '../core/dtype.ts';
import type { Storage } from '../core/memory/storage.ts';
import { transferred } from '../core/memory/transfer.ts';
import type { Device } from '../device/device.ts';
import { GradTarget } from './target.ts';

export class Leaf extends GradTarget {
  override readonly isLeaf = true as const;
  /** Whether the gradient is stored in memory that bind() has set. */
  isBound = false;
  /** Whether the program has filled the gradient with zeros. It then stays, although backward adds nothing. */
  isZeroed = false;
  /** Number of contributions that the running backward has yet to deliver. */
  pending = 0;
  readonly #ready = new Set<() => void>();
  /** The gradient of earlier backwards, while the running backward's gradient is collected separately. */
  #earlier: { readonly grad: Storage | null; readonly isFilled: boolean } | null = null;
  #isCaptured = false;
  /**
   * True if the gradient was emptied but its memory still holds old values. Filling it with zeros is
   * deferred, because the next contribution may overwrite it.
   */
  #isStale = false;

  override share(contribution: Storage): void {
    // Copied, because a gradient is changed in place later, and the contribution may also be another gradient.
    if (this.isFilled) this.add(contribution);
    else kernels().copy([this.count], this.open(), contribution.dense);
    this.close();
  }

  /**
   * Collects the gradient of a backward separately: for hooks, or, if `isCaptured`, to return it instead of adding it.
   */
  setAside(isCaptured: boolean): void {
    if (this.#earlier !== null) return;
    this.settle();
    this.#earlier = { grad: this.grad, isFilled: this.isFilled };
    this.#isCaptured = isCaptured;
    this.grad = null;
    this.isFilled = false;
  }

  /** Ends setAside(): drops the collected gradient if it was not added. */
  restore(): void {
    if (this.#earlier === null) return;
    this.grad?.release();
    ({ grad: this.grad, isFilled: this.isFilled } = this.#earlier);
    this.#earlier = null;
  }

  /** Adds the separately collected gradient to the gradient of earlier backwards. */
  #merge(): void {
    const own = this.grad!.retain();
    this.restore();
    if (this.isFilled) this.add(own);
    else kernels().copy([this.count], this.open(), own.dense);
    this.isFilled = true;
    own.release();
  }

  /**
   * Notes that one contribution has arrived, or that one of a checkpoint has been replaced. After the last one, runs
   * the hooks and calls the listeners.
   */
  override contributed(): void {
    if (--this.pending > 0) return;
    if (this.#earlier !== null && this.isFilled) {
      this.runHooks();
      if (!this.#isCaptured) this.#merge();
    }
    if (!this.#isCaptured || this.#earlier === null) for (const ready of this.#ready) ready();
  }

  onReady(ready: () => void): () => void {
    // Wrapped, so that the same function can be added twice and removed once.
    const entry = (): void => ready();
    this.#ready.add(entry);
    return () => void this.#ready.delete(entry);
  }

  /**
   * Moves the gradient into `bound`, with its value or zeros; the owner of `bound` may change it. Takes ownership of
   * one reference.
   */
  bind(bound: Storage): void {
    kernels().copy([this.count], bound.dense, this.grad !== null && this.isFilled ? this.grad.dense : 0);
    this.grad?.release();
    this.grad = bound;
    this.isBound = true;
    this.isFilled = true;
    this.#isStale = false;
  }

  /** Converts the gradient to another dtype or device, with its value. */
  convert(dtype: DType, device: Device): void {
    this.dtype = dtype;
    this.device = device;
    if (this.grad === null) return;
    const converted = transferred(this.grad.dense, [this.count], dtype, device);
    this.grad.release();
    this.grad = converted;
  }

  /**
   * Empties the gradient: the next contribution overwrites it. Until then it is zero once settle() has run.
   */
  empty(): void {
    this.isFilled = false;
    this.#isStale = this.grad !== null;
  }

  /**
   * Fills a gradient that empty() has emptied with zeros. Must run before `grad` is read. The reader may also write the
   * gradient: a reducer writes the average of other ranks. So backward adds later contributions instead of overwriting.
   */
  settle(): void {
    if (this.#isStale && !this.isFilled) {
      kernels().copy([this.count], this.grad!.dense, 0);
      this.isFilled = true;
    }
    this.#isStale = false;
  }

  /** Drops the gradient. A bound one is no longer bound. */
  drop(): void {
    this.grad?.release();
    this.grad = null;
    this.isFilled = false;
    this.isBound = false;
    this.isZeroed = false;
    this.#isStale = false;
  }
}
