// A case: input tensors, and calls of the package with them, as JSON that oracle.py reads, too.
import type { DType, Shape } from '../../../src/index.ts';

/** An argument. Tensors and what JSON lacks are references. */
export type Arg = null | number | string | boolean | Ref | readonly Arg[] | { readonly [name: string]: Arg };

/** Value number n of the case (the inputs, then the first result of each step), or a number that JSON cannot say. */
export interface Ref {
  readonly $: number | 'undefined' | 'nan' | 'inf' | '-inf' | '-0';
}

/** One view: the name of PyTorch's method and its arguments, or a slice [dim, start, end, step]. */
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
  /** Changes input 0, which is a result of the case then. */
  readonly inPlace?: boolean;
  /** Of a module: what its constructor takes, its state by name, and the mode. */
  readonly new?: readonly Arg[];
  readonly state?: Readonly<Record<string, Ref>>;
  readonly training?: boolean;
}

export interface Case {
  /** 'op:number'; with the seed it names the case. */
  readonly name: string;
  readonly inputs: readonly Input[];
  readonly steps: readonly Step[];
  /** What is compared: everything, or dtype and shape alone (the numbers are random). */
  readonly compares: 'all' | 'kind';
  /** Words of the draft that the table of differences may name. */
  readonly tags: readonly string[];
  /**
   * Set where rounding may grow on the way: the oracle then moves the inputs by this share and says how far
   * results moved.
   */
  readonly unsteady?: number;
}

/** The results of a step that the case ends with, or why there is none. */
export interface Value {
  readonly dtype: string;
  readonly shape: Shape;
  /** Numbers as they are in the dtype; int64 as bigint. */
  readonly elements: ArrayLike<number> | BigInt64Array;
}
export type Result = Value | string;

export interface Answer {
  /** Set where the call was refused. */
  readonly raises?: string;
  /** Set where the call was refused in a way in which the package must not refuse. */
  readonly crash?: string;
  readonly outs: readonly Result[];
  readonly gradRaises?: string;
  /** By input that requires a gradient. */
  readonly grads: readonly (Value | null)[];
  /** How far results moved when the inputs were moved; 0 where the case is steady. */
  readonly error: number;
}
