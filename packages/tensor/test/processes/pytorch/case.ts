// The format of a case, which is JSON that oracle.py reads, too: input tensors, and calls of the package with them.
import type { DType, Shape } from '../../../src/index.ts';

/** An argument. Tensors and values that JSON lacks are references. */
export type Arg = null | number | string | boolean | Ref | readonly Arg[] | { readonly [name: string]: Arg };

/** Value number n of the case (the inputs, then the first result of each step), or a value that JSON lacks. */
export interface Ref {
  readonly $: number | 'undefined' | 'nan' | 'inf' | '-inf' | '-0';
}

/** One view: the name of a PyTorch method and its arguments, or a slice [dim, start, end, step]. */
export type View = readonly [name: string, ...args: (number | Shape)[]];

/** A leaf tensor, and the views of it that the case takes. */
export interface Input {
  readonly dtype: DType;
  readonly shape: Shape;
  /** Numbers are exact in the dtype; texts are NaN, infinities, −0 and large integers. */
  readonly values: readonly (number | string)[];
  readonly views: readonly View[];
  readonly grad: boolean;
}

/** One call. */
export interface Step {
  /** The name of a function, of a method, or of a class: 'nn.Linear'. */
  readonly op: string;
  readonly via: 'function' | 'method' | 'module';
  readonly args: readonly Arg[];
  /** Whether the step changes input 0, which then is a result of the case. */
  readonly inPlace?: boolean;
  /** For a module: the arguments of its constructor. */
  readonly new?: readonly Arg[];
  /** For a module: its parameters and buffers, by PyTorch's names. */
  readonly state?: Readonly<Record<string, Ref>>;
  /** For a module: whether it is in training mode. */
  readonly training?: boolean;
}

export interface Case {
  /** 'op:number', which together with the seed names the case. */
  readonly name: string;
  readonly inputs: readonly Input[];
  readonly steps: readonly Step[];
  /** The compared parts: everything, or only dtype and shape, because the numbers are random. */
  readonly compares: 'all' | 'kind';
  /** Words for the case that the table of differences may name. */
  readonly tags: readonly string[];
  /**
   * Set if rounding errors may grow in the case. The oracle then changes the inputs by this share of their size, and
   * reports how far results and gradients moved.
   */
  readonly unsteady?: number;
}

/** A result of the last step. */
export interface Value {
  readonly dtype: string;
  readonly shape: Shape;
  /** The elements as stored in the dtype; those of int64 are bigint. */
  readonly elements: ArrayLike<number> | BigInt64Array;
}
export type Result = Value | string;

export interface Answer {
  /** The message, if the call was refused. */
  readonly raises?: string;
  /** The message, if the call threw anything but a proper error of the package. */
  readonly crash?: string;
  readonly outs: readonly Result[];
  readonly gradRaises?: string;
  /** The gradient of each input that requires one. */
  readonly grads: readonly (Value | null)[];
  /** The gradients of a weighted sum of the gradients, null for zero; absent if they are not compared. */
  readonly seconds?: readonly (Value | null)[];
  /** The message, if second gradients were refused. */
  readonly secondRaises?: string;
  /** How far results and gradients moved when the inputs were changed; 0 if `unsteady` is not set. */
  readonly error: number;
}
