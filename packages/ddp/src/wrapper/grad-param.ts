// All that DDP needs to know about an autograd. Nothing here mentions a tensor: any engine whose parameters can
// show their memory and tell when a gradient is final can be made data-parallel. Errors that `ready` and `done`
// throw are meant for whoever called backward: let them through.
import type { BufferCarrier, BufferView } from '@ringwise/collectives';
import { notParams } from '../errors.ts';

/**
 * Memory for gradients that JavaScript cannot reach, from the engine that computes them. It is itself handed to the group, so
 * its view names the stream that the engine works on at that moment; what is done with it is ordered with the engine's
 * other work there.
 */
export interface BucketMemory extends BufferCarrier {
  /** Elements `offset` to `offset + count` of it. */
  readonly part: (offset: number, count: number) => BucketMemory;
  readonly clear: () => void;
  /** Divides every element by `divisor`, and rounds once. */
  readonly divide: (divisor: number) => void;
  /** Whether every element is zero. Waits for the device. */
  readonly isZero: () => boolean;
}

/** One trainable parameter. */
export interface GradParam {
  /** Unique in the model, equal on all ranks. */
  readonly name: string;
  /**
   * The object that the parameter is in its engine, the same each time it is offered: ddp() refuses a parameter that
   * another wrapper averages. Optional; by default its memory.
   */
  readonly key?: object;
  /** The parameter's memory. Rank 0's copy is broadcast once, when ddp() is called. */
  readonly value: BufferView;
  /** The gradient's memory, or null while there is none. Same dtype and count as `value`. */
  readonly grad: BufferView | null;
  /** Optional. Compared between ranks; communication hooks that work on matrices need it. */
  readonly shape?: readonly number[];
  /** Whether it trains at the moment. Optional; for the error when it was frozen after ddp(). */
  readonly requiresGrad?: boolean;
  /**
   * Calls `ready` once per backward, when this gradient is final. `backward`, optional: an object that stands for the
   * backward, the same for those that run inside one another. Returns a function that unsubscribes.
   */
  readonly onGradReady: (ready: (backward?: object) => void) => () => void;
  /**
   * Moves the gradient into `bucket`, with its value, or zero while there is none. It lives there from then on:
   * nothing is copied. Once cleared it is zero for whoever reads `grad` before the next backward. Optional.
   */
  readonly bindGrad?: (bucket: BufferView) => void;
  /**
   * New memory for `count` elements of gradients where this parameter lies, zeroed. Optional; needed with `bindGrad` where
   * JavaScript cannot reach that memory.
   */
  readonly allocBucket?: (count: number) => BucketMemory;
  /** Divides the gradient in place. Optional; for weights in a group of one, where allocBucket is needed in others. */
  readonly divideGrad?: (divisor: number) => void;
  /** A copy of the value in host memory. Optional; for assertInSync, where allocBucket is needed. */
  readonly readValue?: () => ArrayBufferView;
  /** Forgets the gradient: `grad` is null until the next backward. Optional; for `unused: 'skip'`. */
  readonly dropGrad?: () => void;
  /**
   * Calls `done` at the end of every backward that reached this parameter's engine and did not throw, after the last
   * `ready`, with the same `backward`; an engine that several models share has to pass it, so that each can tell its own
   * backwards. Returns a function that unsubscribes. Optional: without it, the training loop calls `finish()` itself.
   * The parameters of a model share an engine, so ddp() listens to the first that has it.
   */
  readonly onBackwardEnd?: (done: (backward?: object) => void) => () => void;
}

/** Memory of a model that has no gradient: what training changes without one, such as running statistics. */
export interface StateBuffer {
  /** Unique in the model, equal on all ranks. */
  readonly name: string;
  readonly value: BufferView;
  /** A copy of the value in host memory. Optional; for assertInSync, where JavaScript cannot reach the value. */
  readonly readValue?: () => ArrayBufferView;
}

/** A parameter that does not train. */
export interface FrozenParam extends StateBuffer {
  /** As that of a GradParam. */
  readonly key?: object;
  /** Optional. Compared between ranks. */
  readonly shape?: readonly number[];
  /**
   * Calls `ready` when the parameter gets a gradient although it was frozen when it was offered. Optional: without it,
   * such a gradient goes unnoticed. Returns a function that unsubscribes.
   */
  readonly onGradReady?: (ready: () => void) => () => void;
}

declare global {
  // Declarations of this interface merge, so that packages which do not import each other agree on the type of the
  // symbol as they do on its value.
  interface RingwiseSymbols {
    readonly gradParams: unique symbol;
    readonly frozenParams: unique symbol;
    readonly buffers: unique symbol;
  }
}

/** The protocol by which a model offers its trainable parameters: `[Symbol.for('ringwise.gradParams')]()`. */
export const gradParamsSymbol: RingwiseSymbols['gradParams'] = Symbol.for('ringwise.gradParams') as never;

/** The protocol by which a model offers its other parameters: `[Symbol.for('ringwise.frozenParams')]()`. */
export const frozenParamsSymbol: RingwiseSymbols['frozenParams'] = Symbol.for(
  'ringwise.frozenParams',
) as never;

/** The protocol by which a model offers state without gradients: `[Symbol.for('ringwise.buffers')]()`. */
export const buffersSymbol: RingwiseSymbols['buffers'] = Symbol.for('ringwise.buffers') as never;

export interface GradParamSource {
  readonly [gradParamsSymbol]: () => Iterable<GradParam>;
  readonly [frozenParamsSymbol]?: () => Iterable<FrozenParam>;
  readonly [buffersSymbol]?: () => Iterable<StateBuffer>;
}

/** The trainable parameters of a model, or those in a list. */
export function paramsOf<P>(
  source: { readonly [gradParamsSymbol]: () => Iterable<P> } | Iterable<P>,
  verb = 'ddp',
): P[] {
  if ((typeof source !== 'object' && typeof source !== 'function') || source === null) throw notParams(verb);
  if (gradParamsSymbol in source) return [...source[gradParamsSymbol]()];
  if (Symbol.iterator in source) return [...source];
  throw notParams(verb);
}

/** The frozen parameters of a model; none for a list. */
export function frozenParamsOf(source: object): FrozenParam[] {
  const offer = (source as Partial<GradParamSource>)[frozenParamsSymbol];
  return offer === undefined ? [] : [...offer.call(source as GradParamSource)];
}

/** The state buffers of a model; none for a list of parameters. */
export function stateBuffersOf(source: object): StateBuffer[] {
  const offer = (source as Partial<GradParamSource>)[buffersSymbol];
  return offer === undefined ? [] : [...offer.call(source as GradParamSource)];
}
