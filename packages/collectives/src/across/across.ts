// Collectives with gradients, for the tensors of any autograd library that implements the contract in autograd.ts.
//
// The gradient of a verb depends on how the ranks use a value that is equal on all of them. If all ranks compute the
// same from it, each rank already has the whole gradient. If each rank computes something different from it, the
// gradient is the sum over the ranks. A verb cannot detect which, so the caller states it: `after` or `before`.
//
// Communication in backward blocks until all ranks have reached the same verb. All ranks run the same verbs, so their
// backward passes reach them in the same reverse order. Results are in new memory.
import type { Group } from '../group/group.ts';
import { checkGroup } from '../options/check-group.ts';
import type { CollectiveOptions } from '../options/options.ts';
import type { Differentiable } from './autograd.ts';
import { checkBlocking, finished, finishedSync } from './call.ts';
import * as exchanges from './exchange.ts';
import * as gathers from './gathers.ts';
import * as messages from './messages.ts';
import type {
  AfterOptions,
  DimOptions,
  ExchangeOptions,
  OpOptions,
  PartOptions,
  RootedOptions,
  TaggedOptions,
} from './options.ts';
import * as reductions from './reductions.ts';
import * as rooted from './rooted.ts';

const none = Object.freeze({});

/**
 * The verbs of a group for tensors with gradients, made by across(). Each takes a tensor and returns a new one. The
 * plain forms resolve when the result is complete; the Sync forms block until then. enter() and part() send nothing in
 * forward and return at once.
 *
 * Where a gradient needs communication, backward blocks. A group that may not block (`tcp`, `loopback`) therefore
 * refuses the verb with ERR_COLL_UNSUPPORTED, unless nothing is recorded. All ranks must run backward through the same
 * verbs. Either all ranks or none pass a tensor that requires a gradient; the ranks compare this.
 */
export class Across {
  /** The group that the verbs communicate in. */
  readonly group: Group;

  /** Internal; call across(). */
  constructor(group: Group) {
    this.group = group;
  }

  /**
   * Returns `x`, which is equal on all ranks and from which each rank now computes something different. The gradient is
   * the sum over all ranks. Do not use it for results after 'own', whose gradients are already summed.
   */
  enter<T extends Differentiable>(x: T, options: CollectiveOptions = none): T {
    return reductions.enter(this.group, x, options);
  }

  /**
   * Reduces `x` over all ranks. Collective. The gradient of `x` is the gradient of the result (after 'same'), or its
   * reduction over all ranks (after 'own').
   */
  async allReduce<T extends Differentiable>(x: T, options: AfterOptions & OpOptions): Promise<T> {
    return finished(reductions.allReduce(this.group, x, options));
  }
  /** Runs allReduce() and blocks this thread until it has ended. Throws its error. */
  allReduceSync<T extends Differentiable>(x: T, options: AfterOptions & OpOptions): T {
    checkBlocking(this.group, 'allReduce');
    return finishedSync(reductions.allReduce(this.group, x, options));
  }

  /**
   * Concatenates the ranks' tensors along a dimension, in rank order. Collective. The gradient is this rank's part of
   * the gradient of the result (after 'same'), or of its sum over all ranks (after 'own').
   */
  async allGather<T extends Differentiable>(x: T, options: AfterOptions & DimOptions): Promise<T> {
    return finished(gathers.allGather(this.group, x, options));
  }
  /** Runs allGather() and blocks this thread until it has ended. Throws its error. */
  allGatherSync<T extends Differentiable>(x: T, options: AfterOptions & DimOptions): T {
    checkBlocking(this.group, 'allGather');
    return finishedSync(gathers.allGather(this.group, x, options));
  }

  /**
   * Returns this rank's part of a tensor that is equal on all ranks. The gradient of `x` is the gathered gradients of
   * all parts if all ranks compute the same from `x` elsewhere (before 'same'), or zero outside this rank's part
   * (before 'own').
   */
  part<T extends Differentiable>(x: T, options: PartOptions): T {
    return gathers.part(this.group, x, options);
  }

  /**
   * Reduces `x` over all ranks and returns this rank's part of the result. Collective. The gradient of `x` is the
   * gathered gradients of all parts.
   */
  async reduceScatter<T extends Differentiable>(x: T, options: OpOptions & DimOptions = none): Promise<T> {
    return finished(gathers.reduceScatter(this.group, x, options));
  }
  /** Runs reduceScatter() and blocks this thread until it has ended. Throws its error. */
  reduceScatterSync<T extends Differentiable>(x: T, options: OpOptions & DimOptions = none): T {
    checkBlocking(this.group, 'reduceScatter');
    return finishedSync(gathers.reduceScatter(this.group, x, options));
  }

  /**
   * Splits `x` along one dimension into a part for each rank, and concatenates the received parts along the same or
   * another dimension. Collective. The gradient is exchanged in the opposite direction.
   */
  async allToAll<T extends Differentiable>(x: T, options: ExchangeOptions): Promise<T> {
    return finished(exchanges.allToAll(this.group, x, options));
  }
  /** Runs allToAll() and blocks this thread until it has ended. Throws its error. */
  allToAllSync<T extends Differentiable>(x: T, options: ExchangeOptions): T {
    checkBlocking(this.group, 'allToAll');
    return finishedSync(exchanges.allToAll(this.group, x, options));
  }

  /**
   * Returns the root's tensor on all ranks. Collective. The others pass a tensor of the same shape, whose elements are
   * ignored. The root's gradient is the gradient of its own result (after 'same'), or the sum over all ranks (after
   * 'own'); the gradient of the other ranks is zero.
   */
  async broadcast<T extends Differentiable>(x: T, options: AfterOptions & RootedOptions): Promise<T> {
    return finished(reductions.broadcast(this.group, x, options));
  }
  /** Runs broadcast() and blocks this thread until it has ended. Throws its error. */
  broadcastSync<T extends Differentiable>(x: T, options: AfterOptions & RootedOptions): T {
    checkBlocking(this.group, 'broadcast');
    return finishedSync(reductions.broadcast(this.group, x, options));
  }

  /**
   * Reduces `x` to the root. Collective. The other ranks get a zero of shape []. They must include it in the value on
   * which they run backward, because backward through it receives the root's gradient.
   */
  async reduce<T extends Differentiable>(x: T, options: OpOptions & RootedOptions = none): Promise<T> {
    return finished(reductions.reduce(this.group, x, options));
  }
  /** Runs reduce() and blocks this thread until it has ended. Throws its error. */
  reduceSync<T extends Differentiable>(x: T, options: OpOptions & RootedOptions = none): T {
    checkBlocking(this.group, 'reduce');
    return finishedSync(reductions.reduce(this.group, x, options));
  }

  /**
   * Concatenates the ranks' tensors along a dimension at the root. Collective. The other ranks get a zero, as from
   * reduce().
   */
  async gather<T extends Differentiable>(x: T, options: RootedOptions & DimOptions = none): Promise<T> {
    return finished(rooted.gather(this.group, x, options));
  }
  /** Runs gather() and blocks this thread until it has ended. Throws its error. */
  gatherSync<T extends Differentiable>(x: T, options: RootedOptions & DimOptions = none): T {
    checkBlocking(this.group, 'gather');
    return finishedSync(rooted.gather(this.group, x, options));
  }

  /**
   * Splits the root's tensor along a dimension into a part for each rank. Collective. The others pass a tensor of the
   * shape of their part, whose elements are ignored. The root's gradient is the gathered gradients of all parts; the
   * gradient of the other ranks is zero.
   */
  async scatter<T extends Differentiable>(x: T, options: RootedOptions & DimOptions = none): Promise<T> {
    return finished(rooted.scatter(this.group, x, options));
  }
  /** Runs scatter() and blocks this thread until it has ended. Throws its error. */
  scatterSync<T extends Differentiable>(x: T, options: RootedOptions & DimOptions = none): T {
    checkBlocking(this.group, 'scatter');
    return finishedSync(rooted.scatter(this.group, x, options));
  }

  /**
   * Sends `x` to a rank, which must call recv(). Returns a zero of shape []: backward through it waits for the gradient
   * that the receiver sends in its backward, and continues from `x`.
   */
  async send<T extends Differentiable>(x: T, to: number, options: TaggedOptions = none): Promise<T> {
    return finished(messages.send(this.group, x, to, options));
  }
  /** Runs send() and blocks this thread until it has ended. Throws its error. */
  sendSync<T extends Differentiable>(x: T, to: number, options: TaggedOptions = none): T {
    checkBlocking(this.group, 'send');
    return finishedSync(messages.send(this.group, x, to, options));
  }

  /**
   * Receives a tensor. `like` has its shape and dtype, and requires a gradient if the sender's tensor does; its
   * elements are ignored. Backward sends the gradient to the sender.
   */
  async recv<T extends Differentiable>(like: T, from: number, options: TaggedOptions = none): Promise<T> {
    return finished(messages.recv(this.group, like, from, options));
  }
  /** Runs recv() and blocks this thread until it has ended. Throws its error. */
  recvSync<T extends Differentiable>(like: T, from: number, options: TaggedOptions = none): T {
    checkBlocking(this.group, 'recv');
    return finishedSync(messages.recv(this.group, like, from, options));
  }
}

/**
 * Returns the verbs of a group for tensors with gradients. Not collective.
 *
 * @example
 * ```ts
 * const loss = await across(group).allReduce(x, { op: 'avg', after: 'same' });
 * ```
 */
export function across(group: Group): Across {
  checkGroup('across', group);
  return new Across(group);
}
