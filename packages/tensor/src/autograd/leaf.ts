// The gradient of a tensor that the user made: it stays after backward, may live in memory that somebody else owns
// (a bucket of a reducer), and tells its listeners when it is final.
import { kernels } from '../backends/index.ts';
import type { DType, HostArray } from '../dtype.ts';
import { adopt, allocate, type Storage } from '../storage.ts';
import { GradTarget } from './target.ts';

export class Leaf extends GradTarget {
  override readonly isLeaf = true;
  isBound = false;
  /** Contributions that the running backward still owes. */
  pending = 0;
  readonly #ready = new Set<() => void>();

  override share(contribution: Storage): void {
    // Copied: a gradient is changed in place later, and the contribution may be another gradient too.
    if (this.isFilled) this.add(contribution);
    else kernels().copy([this.count], this.open(), contribution.dense);
    this.close();
  }

  protected override contributed(): void {
    if (--this.pending === 0) for (const ready of this.#ready) ready();
  }

  onReady(ready: () => void): () => void {
    // Wrapped, so that the same function can be added twice and removed once.
    const entry = (): void => ready();
    this.#ready.add(entry);
    return () => void this.#ready.delete(entry);
  }

  /** Moves the gradient into `array`, with its value. */
  bind(array: HostArray): void {
    const bound = adopt(this.dtype, array);
    kernels().copy([this.count], bound.dense, this.grad !== null && this.isFilled ? this.grad.dense : 0);
    this.grad?.release();
    this.grad = bound;
    this.isBound = true;
  }

  /** Gives the gradient another dtype, with its value. */
  convert(dtype: DType): void {
    this.dtype = dtype;
    if (this.grad === null) return;
    const converted = allocate(dtype, this.count);
    kernels().copy([this.count], converted.dense, this.grad.dense);
    this.grad.release();
    this.grad = converted;
  }

  /** Fills the gradient with zero; the next contribution is written over it instead of added. */
  zero(): void {
    if (this.grad !== null) kernels().copy([this.count], this.grad.dense, 0);
    this.isFilled = false;
  }

  drop(): void {
    this.grad?.release();
    this.grad = null;
    this.isFilled = false;
    this.isBound = false;
  }
}
