// The interface between DDP and an autograd library. It does not mention tensors: any engine whose parameters can
// expose their memory and report when a gradient is final can be made data-parallel. Errors that `ready` and `done`
// throw are for the caller of backward, so the engine must not catch them.
import type { BufferCarrier, BufferView } from '@ringwise/collectives';
import { notParams } from '../errors.ts';

/**
 * The memory of a bucket. If JavaScript cannot access it, the engine that computes the gradients allocates it. It is
 * passed to the group directly, so its view must name the stream that the engine uses at that time. Operations on it
 * are ordered with the engine's other work on that stream.
 */
export interface BucketMemory extends BufferCarrier {
  /** Returns a view of elements `offset` to `offset + count` of this memory. */
  readonly part: (offset: number, count: number) => BucketMemory;
  /** Sets all elements to 0. */
  readonly clear: () => void;
  /** Divides every element by `divisor` and rounds once. */
  readonly divide: (divisor: number) => void;
  /** Returns whether every element is zero. Waits for the device. */
  readonly isZero: () => boolean;
}

/** One trainable parameter. */
export interface GradParam {
  /** Name, unique in the model and equal on all ranks. */
  readonly name: string;
  /**
   * The engine's object for the parameter, the same each time it is offered. With it, ddp() refuses a
   * parameter that another wrapper averages. Optional; default: its memory.
   */
  readonly key?: object;
  /** The parameter's memory. ddp() broadcasts rank 0's values into it. */
  readonly value: BufferView;
  /** The gradient's memory, or null if there is none. Same dtype and count as `value`. */
  readonly grad: BufferView | null;
  /** Optional. Compared between ranks. Communication hooks that work on matrices need it. */
  readonly shape?: readonly number[];
  /** Whether it trains at the moment. Optional; used for the error if it was frozen after ddp(). */
  readonly requiresGrad?: boolean;
  /**
   * Calls `ready` once per backward, when this gradient is final. The optional `backward` is an object that
   * identifies the backward; nested backwards have the same. Returns a function that unsubscribes.
   */
  readonly onGradReady: (ready: (backward?: object) => void) => () => void;
  /**
   * Moves the gradient into `bucket`, its part of a bucket's memory: copies the value, or zeros if there is no
   * gradient. From then on the gradient is stored there, so that it need not be copied. After it has been cleared,
   * `grad` reads as zeros until the next backward. Optional.
   */
  readonly bindGrad?: (bucket: BufferView) => void;
  /**
   * Returns new, zeroed memory for `count` elements of gradients on this parameter's device. Optional;
   * required with `bindGrad` if JavaScript cannot access that memory.
   */
  readonly allocBucket?: (count: number) => BucketMemory;
  /**
   * Divides the gradient in place. Optional; needed for weights in a group of one if allocBucket is needed in
   * larger groups.
   */
  readonly divideGrad?: (divisor: number) => void;
  /**
   * Returns a copy of the value in host memory. Optional; needed for assertInSync() if allocBucket is needed.
   */
  readonly readValue?: () => ArrayBufferView;
  /** Drops the gradient: `grad` is null until the next backward. Optional; for `unused: 'skip'`. */
  readonly dropGrad?: () => void;
  /**
   * Whether the program has filled the gradient with zeros, instead of dropping it. `unused: 'skip'` then keeps it.
   * Optional; default: false.
   */
  readonly keepsZeros?: boolean;
  /**
   * Returns a new parameter of the same engine, with the name and a copy of the value in host memory, and without a
   * gradient. Its `key` is an object that the engine's optimizers accept. Optional; for the outer optimizers of
   * diloco() in @ringwise/elastic.
   */
  readonly clone?: () => GradParam;
  /**
   * Calls `done` at the end of every backward that reached this parameter's engine and did not throw, after
   * the last `ready`, with the same `backward`. An engine that several models share must pass `backward`, so
   * that each model can recognize its own backwards. Returns a function that unsubscribes. Optional: without
   * it, the training loop must call `finish()`. The parameters of a model share an engine, so ddp()
   * subscribes to the first one that has it.
   */
  readonly onBackwardEnd?: (done: (backward?: object) => void) => () => void;
}

/** Memory of a model that has no gradient but changes in training, such as running statistics. */
export interface StateBuffer {
  /** Name, unique in the model and equal on all ranks. */
  readonly name: string;
  /** The memory itself. */
  readonly value: BufferView;
  /**
   * Returns a copy of the value in host memory. Optional; needed for assertInSync() if JavaScript cannot
   * access the value.
   */
  readonly readValue?: () => ArrayBufferView;
}

/** A parameter that does not train. */
export interface FrozenParam extends StateBuffer {
  /** See GradParam. */
  readonly key?: object;
  /** Optional. Compared between ranks. */
  readonly shape?: readonly number[];
  /**
   * Calls `ready` if the parameter gets a gradient although it was frozen when it was offered. Returns a
   * function that unsubscribes. Optional: without it, such a gradient is not detected.
   */
  readonly onGradReady?: (ready: () => void) => () => void;
}

declare global {
  // Declarations of this interface merge, so that packages that do not import each other agree on the
  // symbol's type as they do on its value.
  interface RingwiseSymbols {
    readonly gradParams: unique symbol;
    readonly frozenParams: unique symbol;
    readonly buffers: unique symbol;
  }
}

/**
 * Symbol of the method with which a model offers its trainable parameters:
 * `Symbol.for('ringwise.gradParams')`.
 */
export const gradParamsSymbol: RingwiseSymbols['gradParams'] = Symbol.for('ringwise.gradParams') as never;

/**
 * Symbol of the method with which a model offers its frozen parameters:
 * `Symbol.for('ringwise.frozenParams')`.
 */
export const frozenParamsSymbol: RingwiseSymbols['frozenParams'] = Symbol.for(
  'ringwise.frozenParams',
) as never;

/** Symbol of the method with which a model offers its state buffers: `Symbol.for('ringwise.buffers')`. */
export const buffersSymbol: RingwiseSymbols['buffers'] = Symbol.for('ringwise.buffers') as never;

/** An object that offers its trainable parameters, such as a module of @ringwise/tensor. */
export interface GradParamSource {
  readonly [gradParamsSymbol]: () => Iterable<GradParam>;
  readonly [frozenParamsSymbol]?: () => Iterable<FrozenParam>;
  readonly [buffersSymbol]?: () => Iterable<StateBuffer>;
}

/** Returns the trainable parameters of a model, or those in a list. */
export function paramsOf<P>(
  source: { readonly [gradParamsSymbol]: () => Iterable<P> } | Iterable<P>,
  verb = 'ddp',
): P[] {
  if ((typeof source !== 'object' && typeof source !== 'function') || source === null) throw notParams(verb);
  if (gradParamsSymbol in source) return [...source[gradParamsSymbol]()];
  if (Symbol.iterator in source) return [...source];
  throw notParams(verb);
}

/** Returns the frozen parameters of a model; none for a list. */
export function frozenParamsOf(source: object): FrozenParam[] {
  const offer = (source as Partial<GradParamSource>)[frozenParamsSymbol];
  return offer === undefined ? [] : [...offer.call(source as GradParamSource)];
}

/** Returns the state buffers of a model; none for a list of parameters. */
export function stateBuffersOf(source: object): StateBuffer[] {
  const offer = (source as Partial<GradParamSource>)[buffersSymbol];
  return offer === undefined ? [] : [...offer.call(source as GradParamSource)];
}
