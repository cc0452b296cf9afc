// The contract between the differentiable verbs and an autograd library. The two find each other through a global
// symbol and structural types, so that neither imports the other.
import type { BufferCarrier } from '../group/buffer.ts';

/**
 * The functions that an autograd library provides so that verbs can propagate gradients. `T` is its tensor type. A
 * dense tensor also gives access to its memory under `Symbol.for('ringwise.buffer')`. Only `narrow` and `record` record
 * on the tape.
 */
export interface Autograd<T> {
  /** Returns the sizes of the dimensions. */
  readonly shapeOf: (x: T) => readonly number[];
  /** Returns whether an operation on `x` would now be recorded, so that `x` gets a gradient. */
  readonly isRecorded: (x: T) => boolean;
  /** Returns a dense tensor in new memory, of the dtype and on the device of `like`. Its elements may be anything. */
  readonly empty: (like: T, shape: readonly number[]) => T;
  /** Like empty(), with zeros. */
  readonly zeros: (like: T, shape: readonly number[]) => T;
  /** Returns a dense copy in new memory. */
  readonly copy: (x: T) => T;
  /**
   * Returns a dense tensor with dimension `dim` moved to the front, and the others in order: a new object, which may
   * share the memory of `x` and keeps it until it is disposed.
   */
  readonly toFront: (x: T, dim: number) => T;
  /** Moves the first dimension to index `dim`. The result may share memory with `x`, and may be `x` itself. */
  readonly fromFront: (x: T, dim: number) => T;
  /** Returns `count` indices of dimension `dim`, from index `from` on. May share memory. Passes gradients on. */
  readonly narrow: (x: T, dim: number, from: number, count: number) => T;
  /** Returns the elements of dense tensors, one after the other, in a new dense tensor of one dimension. */
  readonly join: (parts: readonly T[]) => T;
  /** Returns `x` times a number. */
  readonly scale: (x: T, factor: number) => T;
  /** Keeps an intermediate tensor beyond the end of backward, until dispose(). */
  readonly keep: (x: T) => void;
  /** Releases an intermediate tensor. */
  readonly dispose: (x: T) => void;
  /** Runs `fn` without recording. */
  readonly untracked: <R>(fn: () => R) => R;
  /**
   * Records `output` as the result of an operation on `input`, and returns it, or returns a new tensor if `output` is
   * `input` itself. If `isRecorded(input)`, backward passes the gradient of the result to `backward`, whose value is
   * the gradient of `input`; null means zero. `backward` runs untracked. The elements of `output` may still be written
   * afterwards.
   */
  readonly record: (name: string, output: T, input: T, backward: (grad: T) => T | null) => T;
}

declare global {
  interface RingwiseSymbols {
    readonly differentiable: unique symbol;
  }
}
/** `[Symbol.for('ringwise.differentiable')]()` returns the Autograd of the object, which is one of its tensors. */
export const differentiableSymbol: RingwiseSymbols['differentiable'] = Symbol.for(
  'ringwise.differentiable',
) as never;

/** A tensor that gives access to its autograd library under `Symbol.for('ringwise.differentiable')`. */
export interface Differentiable extends BufferCarrier {
  readonly [differentiableSymbol]: () => object;
}

/** Returns the autograd library of a tensor, or null if it has none. */
export function autogradOf<T extends Differentiable>(x: T): Autograd<T> | null {
  const offer = (x as Partial<Differentiable> | null | undefined)?.[differentiableSymbol];
  return typeof offer === 'function' ? (offer.call(x) as Autograd<T>) : null;
}
