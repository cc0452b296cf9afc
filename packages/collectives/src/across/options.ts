// Options of the differentiable verbs.
import type { CallOptions, CollectiveOptions } from '../options/options.ts';

/**
 * How the ranks use a value that is equal on all of them. 'same': all ranks compute the same from it, so they get equal
 * gradients. 'own': each rank computes something different from it, and the true gradient is the sum of their
 * gradients.
 */
export type Use = 'same' | 'own';

/** Option of verbs whose result is equal on all ranks. */
export interface AfterOptions extends CollectiveOptions {
  /** How the ranks use the result. Required. The same on all ranks. */
  readonly after: Use;
}

/** Ops that have a gradient. */
export type DifferentiableOp = 'sum' | 'avg';

/** Option of differentiable reductions. */
export interface OpOptions extends CollectiveOptions {
  /** Default 'sum'. The same on all ranks. */
  readonly op?: DifferentiableOp;
}

/** Options of verbs whose parts lie along one dimension. */
export interface DimOptions extends CollectiveOptions {
  /** The dimension along which the ranks' parts lie; negative ones count from the end. Default 0. */
  readonly dim?: number;
  /** Length of each rank's part along `dim`, if they differ. The same on all ranks. */
  readonly sizes?: readonly number[];
}

/** Options of verbs with a root. */
export interface RootedOptions extends CollectiveOptions {
  /** The rank that has the whole tensor. Default 0. The same on all ranks. */
  readonly root?: number;
}

/** Options of across(group).part(). */
export interface PartOptions {
  /** How the ranks use `x`, which is equal on all of them. Required. */
  readonly before: Use;
  /** Dimension that is divided among the ranks. Default 0. */
  readonly dim?: number;
  /** Size of each rank's part in that dimension, in rank order. Default: equal parts. */
  readonly sizes?: readonly number[];
  /** Milliseconds until the operation inside backward fails. Default: the group's. */
  readonly timeoutMs?: number;
  /** Name of the operation inside backward, compared between ranks. */
  readonly label?: string;
}

/** Options of across(group).allToAll(). */
export interface ExchangeOptions extends CollectiveOptions {
  /** The dimension that is split into a part for each rank. */
  readonly split: number;
  /** The dimension along which the received parts are joined. */
  readonly concat: number;
  /** Length, along `split`, of the part for each rank, if they differ. Requires `recvSizes`. */
  readonly sendSizes?: readonly number[];
  /** Length, along `concat`, of the part from each rank. */
  readonly recvSizes?: readonly number[];
}

/** Options of across(group).send() and recv(). */
export interface TaggedOptions extends CallOptions {
  /** Tag of the message, 0 to 2^26 - 1; default 0. Gradients travel under a tag of their own. */
  readonly tag?: number;
}
