// A group of ranks and the verbs on it. Each verb has two forms, like the functions of Node's fs: the plain
// form starts the operation and returns a Work, the Sync form blocks until the operation has ended. #start
// and #run take a call through its files: state.ts refuses it if the group was closed or has failed, its verb
// (verbs/) turns the arguments into operations, which admission.ts admits, and runner.ts runs them.
//
// An error that is found before anything is sent (a wrong argument, a form that the backend does not have) does not
// harm the group: the Sync form throws it, the plain form returns a Work that rejects with it. An error of an operation
// that has started makes all later calls on the group fail, and so does the loss of a member while a subgroup is made.
// If the backend of a subgroup cannot be made for another reason, the group goes on.

import type { Backend, Supports } from '../backend.ts';
import type { NarrowFloat } from '../backends/arithmetic/narrow-floats.ts';
import { type DType, dtypes } from '../dtype.ts';
import {
  aborted,
  badAllocCount,
  CollectiveError,
  cannotBlock,
  memoryNotVisible,
  noMemory,
  unknownDtype,
} from '../errors.ts';
import type { FlightEntry } from '../flight/entry.ts';
import type { Via } from '../init/env.ts';
import { onOneHost } from '../init/placement.ts';
import { foreignMember, reasonText, shown } from '../options/errors.ts';
import { refuseForeign } from '../options/foreign-members.ts';
import type { GroupOptions } from '../options/group-options.ts';
import { noOptions as none, optionsFault } from '../options/known-options.ts';
import { refusingMembers } from '../options/not-awaited.ts';
import type {
  AllReduceOptions,
  AllToAllOptions,
  Buffers,
  CallOptions,
  CollectiveOptions,
  CountsOptions,
  Message,
  MessageOptions,
  Received,
  ReduceOptions,
  RootOptions,
  ShrinkOptions,
  Source,
  SubgroupOptions,
} from '../options/options.ts';
import { allReduce } from '../verbs/all-reduce.ts';
import { allToAll } from '../verbs/all-to-all.ts';
import { barrier } from '../verbs/barrier.ts';
import { broadcast } from '../verbs/broadcast.ts';
import { batch, recv, send } from '../verbs/messages.ts';
import { monitoredBarrier } from '../verbs/monitored-barrier.ts';
import * as objects from '../verbs/objects.ts';
import { allGather, gather, reduceScatter, scatter } from '../verbs/parts.ts';
import { reduce } from '../verbs/reduce.ts';
import { Admission } from './admission.ts';
import { type ArrayOf, asBuffer, type BufferLike, isPlain } from './buffer.ts';
import { entering } from './call-site.ts';
import { rejectedToCaller } from './caller-line.ts';
import { foreignGroupMembers } from './foreign-group-members.ts';
import { Children } from './members/children.ts';
import { membersByColor, membersByList } from './members/subgroups.ts';
import { Runner } from './runner.ts';
import { GroupState } from './state.ts';
import type { Call } from './steps.ts';
import { told } from './unawaited.ts';
import { Work } from './work.ts';

export type { ReduceOptions } from '../options/options.ts';

/** Result of alloc(): a typed array, or `{ data, dtype }` for dtypes that no typed array identifies. */
export type Allocated<D extends DType> = D extends NarrowFloat | 'bool'
  ? { readonly data: ArrayOf<D>; readonly dtype: D }
  : ArrayOf<D>;

/**
 * A group of ranks, and this process's rank in it. All ranks must make the same collective calls in the same
 * order; messages may come in any order. The group borrows a call's buffers until the operation has ended:
 * until then do not write them, read results from them or transfer them. Two pending operations must not
 * share memory. Collectives run in call order; messages run beside them.
 *
 * Parameters of type `Buffers` accept one buffer, or a list of buffers for a single call.
 */
export class Group {
  /** Name for error messages; the same on all ranks. */
  readonly name: string;
  /** This process's rank in this group, from 0. */
  readonly rank: number;
  /** Number of ranks of this group. */
  readonly size: number;
  /** This group's ranks as ranks of the outermost group, in order. */
  readonly ranks: readonly number[];
  /**
   * Index of this process among the processes of its host, from 0: use the device `cuda:${group.localRank}`.
   * Subgroups have the index of the outermost group, so that a process has one device in all its groups.
   */
  readonly localRank: number;
  /** Number of ranks of the outermost group on this host. */
  readonly localSize: number;
  /** Ranks of this group by host: `hosts.length` hosts, rank 0's host first. Empty after joinNccl(). */
  readonly hosts: readonly (readonly number[])[];
  /** The launcher that gave this process its rank, such as 'slurm'; null without one, and in subgroups. */
  readonly via: Via | null;
  /** Name of the backend, such as 'host'. */
  readonly backend: string;
  /** What the backend can do. */
  readonly supports: Supports;
  /** Default deadline of operations in milliseconds. */
  readonly timeoutMs: number;
  readonly #backend: Backend;
  readonly #state: GroupState;
  readonly #admission: Admission;
  readonly #runner: Runner;
  readonly #options: GroupOptions;
  readonly #children: Children<Group>;
  #closing: Promise<void> | null = null;

  constructor(backend: Backend, options: GroupOptions) {
    const fault = optionsFault('Group', options);
    if (fault !== null) throw new CollectiveError(fault, null);
    this.name = options.name;
    this.rank = backend.rank;
    this.size = backend.size;
    this.ranks = options.ranks ?? Array.from({ length: backend.size }, (_, rank) => rank);
    const { localRank, localSize, hosts } = options.placement ?? onOneHost(backend.rank, backend.size);
    this.localRank = localRank;
    this.localSize = localSize;
    this.hosts = hosts;
    this.via = options.via ?? null;
    this.backend = backend.name;
    this.supports = backend.supports;
    this.timeoutMs = options.timeoutMs;
    this.#backend = backend;
    this.#state = new GroupState(backend, options.name, options.instead);
    this.#admission = new Admission(backend, this.#state, options.timeoutMs);
    this.#runner = new Runner(backend, this.#state, this.#admission);
    this.#options = options;
    this.#children = new Children(this, backend, this.#state, options, {
      findMembers: (verb, callOf) => this.#start(verb, callOf),
      abort: (cause) => this.#runner.abort(cause),
      groupOf: (childBackend, childOptions) => new Group(childBackend, childOptions),
    });
  }

  /** The first error, after which every call fails; null while the group works. */
  get failure(): CollectiveError | null {
    return this.#state.failure;
  }

  /** Whether close() was called on this rank. */
  get isClosed(): boolean {
    return this.#closing !== null;
  }

  /**
   * Returns this rank's latest operations on this group, in order, with their states. The host backend keeps
   * the last 1,024 operations, and unfinished ones for longer; other backends keep 256. Not collective, does
   * not block, and works after a failure or close().
   */
  flightRecord(): readonly FlightEntry[] {
    return this.#runner.flightRecord();
  }

  /**
   * Algorithm of the last operation that succeeded, such as 'board one-shot'; null if the backend does not
   * report it.
   */
  get lastAlgorithm(): string | null {
    return this.flightRecord().findLast(({ state }) => state === 'done')?.algorithm ?? null;
  }

  /**
   * Replaces `buffers` on every rank by the reduction over all ranks. Collective. All ranks pass the same
   * lengths and dtypes.
   */
  allReduce(buffers: Buffers, options: AllReduceOptions = none): Work {
    return this.#start('allReduce', (group) => allReduce(group, buffers, options));
  }
  /** Runs allReduce() and blocks this thread until it has ended. Throws its error. */
  allReduceSync(buffers: Buffers, options: AllReduceOptions = none): void {
    this.#run('allReduce', (group) => allReduce(group, buffers, options));
  }

  /**
   * Replaces the root's `buffers` by the reduction over all ranks. Other ranks' buffers are not modified.
   * Collective.
   */
  reduce(buffers: Buffers, options: ReduceOptions & RootOptions = none): Work {
    return this.#start('reduce', (group) => reduce(group, buffers, options));
  }
  /** Runs reduce() and blocks this thread until it has ended. Throws its error. */
  reduceSync(buffers: Buffers, options: ReduceOptions & RootOptions = none): void {
    this.#run('reduce', (group) => reduce(group, buffers, options));
  }

  /** Copies the root's `buffers` into those of every other rank. Collective. */
  broadcast(buffers: Buffers, options: RootOptions = none): Work {
    return this.#start('broadcast', (group) => broadcast(group, buffers, options));
  }
  /** Runs broadcast() and blocks this thread until it has ended. Throws its error. */
  broadcastSync(buffers: Buffers, options: RootOptions = none): void {
    this.#run('broadcast', (group) => broadcast(group, buffers, options));
  }

  /**
   * Writes the inputs of all ranks to `output`, in rank order. Collective. `output` is separate memory,
   * `size` times as long as `input`, or a list with one buffer for each rank. For many buffers in one call,
   * pass a list of inputs and a list of outputs.
   */
  allGather(input: Buffers, output: Buffers, options: CountsOptions = none): Work {
    return this.#start('allGather', (group) => allGather(group, input, output, options));
  }
  /** Runs allGather() and blocks this thread until it has ended. Throws its error. */
  allGatherSync(input: Buffers, output: Buffers, options: CountsOptions = none): void {
    this.#run('allGather', (group) => allGather(group, input, output, options));
  }

  /** Like allGather(), but only the root has an `output`; other ranks pass null. Collective. */
  gather(input: Buffers, output: Buffers | null, options: RootOptions & CountsOptions = none): Work {
    return this.#start('gather', (group) => gather(group, input, output, options));
  }
  /** Runs gather() and blocks this thread until it has ended. Throws its error. */
  gatherSync(input: Buffers, output: Buffers | null, options: RootOptions & CountsOptions = none): void {
    this.#run('gather', (group) => gather(group, input, output, options));
  }

  /**
   * Splits the root's `input` into one part for each rank and writes part `rank` to `output`. Other ranks
   * pass null. Collective.
   */
  scatter(input: Buffers | null, output: Buffers, options: RootOptions & CountsOptions = none): Work {
    return this.#start('scatter', (group) => scatter(group, input, output, options));
  }
  /** Runs scatter() and blocks this thread until it has ended. Throws its error. */
  scatterSync(input: Buffers | null, output: Buffers, options: RootOptions & CountsOptions = none): void {
    this.#run('scatter', (group) => scatter(group, input, output, options));
  }

  /**
   * Reduces `input` over all ranks, splits the result into one part for each rank, and writes part `rank` to
   * `output`. Collective. `input` may be null only with the option `contributions`.
   */
  reduceScatter(input: Buffers | null, output: Buffers, options: ReduceOptions & CountsOptions = none): Work {
    return this.#start('reduceScatter', (group) => reduceScatter(group, input, output, options));
  }
  /** Runs reduceScatter() and blocks this thread until it has ended. Throws its error. */
  reduceScatterSync(
    input: Buffers | null,
    output: Buffers,
    options: ReduceOptions & CountsOptions = none,
  ): void {
    this.#run('reduceScatter', (group) => reduceScatter(group, input, output, options));
  }

  /**
   * Sends part r of `input` to rank r, and writes the part that rank r sends to part r of `output`.
   * Collective. Both are buffers, or both are lists of parts.
   *
   * @example
   * ```ts
   * // Two ranks; rank 0 sends 1 element to rank 0 and 2 to rank 1, rank 1 the same.
   * const output = new Float32Array(group.rank === 0 ? 2 : 4);
   * const received = group.rank === 0 ? [1, 1] : [2, 2];
   * await group.allToAll(Float32Array.of(1, 2, 3), output, { sendCounts: [1, 2], recvCounts: received });
   * ```
   */
  allToAll(input: Buffers, output: Buffers, options: AllToAllOptions = none): Work {
    return this.#start('allToAll', (group) => allToAll(group, input, output, options));
  }
  /** Runs allToAll() and blocks this thread until it has ended. Throws its error. */
  allToAllSync(input: Buffers, output: Buffers, options: AllToAllOptions = none): void {
    this.#run('allToAll', (group) => allToAll(group, input, output, options));
  }

  /**
   * Sends a buffer to one rank, which must call recv() with the same tag, count and dtype. May end before
   * that rank calls it.
   */
  send(buffer: BufferLike, to: number, options: MessageOptions = none): Work {
    return this.#start('send', (group) => send(group, buffer, to, options));
  }
  /** Runs send() and blocks this thread until it has ended. Throws its error. */
  sendSync(buffer: BufferLike, to: number, options: MessageOptions = none): void {
    this.#run('send', (group) => send(group, buffer, to, options));
  }

  /**
   * Receives the first message with the tag from rank `from`, or from any rank with anySource. The Work gives
   * the sender's rank.
   */
  recv(buffer: BufferLike, from: Source, options: MessageOptions = none): Work<number> {
    return this.#start('recv', (group) => recv(group, buffer, from, options));
  }
  /** Runs recv() and blocks this thread until it has ended. Throws its error. */
  recvSync(buffer: BufferLike, from: Source, options: MessageOptions = none): number {
    return this.#run('recv', (group) => recv(group, buffer, from, options));
  }

  /** Starts several sends and receives together. The Work gives the other side's rank of each message. */
  batch(messages: readonly Message[], options: CallOptions = none): Work<number[]> {
    return this.#start('batch', (group) => batch(group, messages, options));
  }
  /** Runs batch() and blocks this thread until it has ended. Throws its error. */
  batchSync(messages: readonly Message[], options: CallOptions = none): number[] {
    return this.#run('batch', (group) => batch(group, messages, options));
  }

  /** Ends when every rank has called it. Collective. */
  barrier(options: CollectiveOptions = none): Work {
    return this.#start('barrier', (group) => barrier(group, options));
  }
  /** Runs barrier() and blocks this thread until it has ended. Throws its error. */
  barrierSync(options: CollectiveOptions = none): void {
    this.#run('barrier', (group) => barrier(group, options));
  }

  /**
   * Like barrier(), but slower: on a timeout the error names all missing ranks, on every rank that called it.
   * Like every timeout it makes all later calls on the group fail.
   */
  monitoredBarrier(options: CollectiveOptions = none): Work {
    return this.#start('monitoredBarrier', (group) => monitoredBarrier(group, options));
  }
  /** Runs monitoredBarrier() and blocks this thread until it has ended. Throws its error. */
  monitoredBarrierSync(options: CollectiveOptions = none): void {
    this.#run('monitoredBarrier', (group) => monitoredBarrier(group, options));
  }

  // The object forms accept any value that v8.serialize() accepts (data, no functions), up to 1 GiB for all values of
  // a call. What a rank gets is always a copy, also of its own value.

  /** Gives every rank a copy of the root's `value`. The `value` of other ranks is ignored. Collective. */
  broadcastObject<T>(value: T | undefined, options: RootOptions = none): Work<T> {
    return this.#start('broadcastObject', (group) => objects.broadcastObject(group, value, options));
  }
  /** Runs broadcastObject() and blocks this thread until it has ended. Throws its error. */
  broadcastObjectSync<T>(value: T | undefined, options: RootOptions = none): T {
    return this.#run('broadcastObject', (group) => objects.broadcastObject(group, value, options));
  }

  /** Gives every rank the values of all ranks, in rank order. Collective. */
  allGatherObject<T>(value: T, options: CollectiveOptions = none): Work<T[]> {
    return this.#start('allGatherObject', (group) => objects.allGatherObject(group, value, options));
  }
  /** Runs allGatherObject() and blocks this thread until it has ended. Throws its error. */
  allGatherObjectSync<T>(value: T, options: CollectiveOptions = none): T[] {
    return this.#run('allGatherObject', (group) => objects.allGatherObject(group, value, options));
  }

  /** Gives the root the values of all ranks in rank order, and null to the other ranks. Collective. */
  gatherObject<T>(value: T, options: RootOptions = none): Work<T[] | null> {
    return this.#start('gatherObject', (group) => objects.gatherObject(group, value, options));
  }
  /** Runs gatherObject() and blocks this thread until it has ended. Throws its error. */
  gatherObjectSync<T>(value: T, options: RootOptions = none): T[] | null {
    return this.#run('gatherObject', (group) => objects.gatherObject(group, value, options));
  }

  /** Gives rank r value r of the root's list. The list of other ranks is ignored. Collective. */
  scatterObject<T>(values: readonly T[] | null, options: RootOptions = none): Work<T> {
    return this.#start('scatterObject', (group) => objects.scatterObject(group, values, options));
  }
  /** Runs scatterObject() and blocks this thread until it has ended. Throws its error. */
  scatterObjectSync<T>(values: readonly T[] | null, options: RootOptions = none): T {
    return this.#run('scatterObject', (group) => objects.scatterObject(group, values, options));
  }

  /** Sends a value to one rank, which must call recvObject() with the same tag. */
  sendObject<T>(value: T, to: number, options: MessageOptions = none): Work {
    return this.#start('sendObject', (group) => objects.sendObject(group, value, to, options));
  }
  /** Runs sendObject() and blocks this thread until it has ended. Throws its error. */
  sendObjectSync<T>(value: T, to: number, options: MessageOptions = none): void {
    this.#run('sendObject', (group) => objects.sendObject(group, value, to, options));
  }

  /** Receives the first object with the tag from rank `from`, or from any rank with anySource. */
  recvObject<T>(from: Source, options: MessageOptions = none): Work<Received<T>> {
    return this.#start('recvObject', (group) => objects.recvObject<T>(group, from, options));
  }
  /** Runs recvObject() and blocks this thread until it has ended. Throws its error. */
  recvObjectSync<T>(from: Source, options: MessageOptions = none): Received<T> {
    return this.#run('recvObject', (group) => objects.recvObject<T>(group, from, options));
  }

  /**
   * Makes a group of the ranks that pass the same `color`, ordered by `key` and then by rank. Resolves with
   * null on a rank whose color is null. Collective over this group. Closing this group closes the new one.
   *
   * @example
   * ```ts
   * const ofHost = await group.split(group.hosts.findIndex((ranks) => ranks.includes(group.rank)));
   * ```
   */
  split(color: number | null, key = this.rank, options: SubgroupOptions = none): Promise<Group | null> {
    const made = this.#children.subgroup('split', options, (group) => membersByColor(group, color, key));
    return ofSplit(made);
  }

  /**
   * Makes a group of these ranks, in this order. Resolves with null on all other ranks. Collective over this group.
   * Closing this group closes the new one.
   */
  subgroup(ranks: readonly number[], options: SubgroupOptions = none): Promise<Group | null> {
    const made = this.#children.subgroup('subgroup', options, (group) => membersByList(group, ranks));
    return ofSubgroup(made);
  }

  /**
   * Makes a group of the ranks that are left after this group has failed, in their old order. Collective over the
   * survivors, which use the store of init(), so the store must have survived. Closing this group closes the new one.
   * Rejects with ERR_COLL_INIT on a rank that the others have continued without, with ERR_COLL_PEER_LOST if a survivor
   * is lost meanwhile, and with ERR_COLL_UNSUPPORTED in an elastic job, whose members agree on the next group
   * themselves.
   */
  shrink(options: ShrinkOptions = none): Promise<Group> {
    return ofShrink(this.#children.shrink(options));
  }

  /**
   * Returns zeroed host memory of `count` elements, which collectives access without a copy if the backend can share
   * it. Not collective. Throws ERR_COLL_INVALID for a wrong count or dtype, and ERR_COLL_UNSUPPORTED if there is no
   * memory of this size.
   */
  alloc<D extends DType = 'float32'>(count: number, dtype: D = 'float32' as D): Allocated<D> {
    const state = this.#state;
    state.checkOpen('alloc');
    if (!Number.isSafeInteger(count) || count < 0) throw state.error(badAllocCount(shown(count)));
    if (!dtypes.includes(dtype)) throw state.error(unknownDtype('alloc', String(dtype), dtypes));
    const { host: data } = this.#memoryOf(count, dtype);
    if (data === null) throw state.error(memoryNotVisible(this.backend));
    return (isPlain(dtype) ? data : { data, dtype }) as Allocated<D>;
  }

  #memoryOf(count: number, dtype: DType): ReturnType<Backend['alloc']> {
    try {
      return this.#backend.alloc(count, dtype);
    } catch (cause) {
      throw this.#state.error(noMemory(this.backend, count, dtype, (cause as Error).message), { cause });
    }
  }

  /**
   * Announces that collectives will often use this whole memory. NCCL can then access device memory without copies;
   * elsewhere this has no effect. Returns a function that ends the registration; keep the memory until you have called
   * it. Not a collective, but all ranks must register and deregister at the same points in their sequence of
   * collectives.
   */
  register(buffer: BufferLike): () => void {
    this.#state.checkOpen('register');
    const view = asBuffer(buffer, 'register');
    return this.#backend.register?.(view) ?? (() => {});
  }

  /** Fails all pending and later calls on all ranks and in its subgroups with ERR_COLL_ABORTED. Does not block. */
  abort(reason: unknown = 'no reason given'): void {
    this.#children.abort(reason);
    if (this.failure !== null || this.isClosed) return;
    const options = reason instanceof Error ? { cause: reason } : undefined;
    this.#runner.abort(this.#state.error(aborted(this.rank, reasonText(reason)), options));
  }

  /**
   * Closes the subgroups, waits until all pending calls have ended, then leaves the group. Later calls fail.
   * Rejects with the failure of a call that nothing has awaited: a mismatch, a passed deadline or a failed system
   * call, also a mismatch that no call of this rank has found. The loss of a rank and abort() do not make it reject.
   * Idempotent.
   */
  close(): Promise<void> {
    this.#closing ??= this.#leave();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Starts a call and returns at once. Argument errors do not throw: awaiting the Work rejects with them. */
  #start<T>(name: string, callOf: (group: Admission) => Call<T>): Work<T> {
    let call: Call<T>;
    entering(this, name, false);
    try {
      this.#state.checkOpen(name);
      call = callOf(this.#admission);
    } catch (error) {
      return new Work(name, -1, this.#state, (finish) => {
        finish(error as CollectiveError);
        return null;
      });
    }
    return this.#runner.start(name, call);
  }

  /** Runs a call on this thread and blocks until it has ended. */
  #run<T>(name: string, callOf: (group: Admission) => Call<T>): T {
    try {
      this.#state.checkOpen(name);
      if (!this.supports.sync) throw this.#state.error(cannotBlock(name, this.backend));
      entering(this, name, true);
      return this.#runner.run(name, callOf(this.#admission));
    } catch (error) {
      told(this.#state, error);
      throw error;
    }
  }

  async #leave(): Promise<void> {
    this.#state.close();
    try {
      const children = await this.#children.close();
      await this.#runner.leave();
      for (const child of children) if (child.status === 'rejected') throw child.reason;
      this.#state.throwUnreported();
    } catch (error) {
      // The error was made in a callback; this adds the lines of the program that await close().
      await rejectedToCaller(error as Error);
    } finally {
      await this.#options.onClose?.();
    }
  }

  static {
    refuseForeign(Group.prototype, 'group', memberError, foreignGroupMembers);
  }
}

function memberError(member: string, fault: string): CollectiveError {
  return new CollectiveError(foreignMember(member, fault), null);
}

/**
 * Returns a function that makes the promise of a group throw, with a sentence, when a member of the group is read of
 * it. `what` and `call` are as in refusingMembers().
 * @internal
 */
export function refusingGroup(what: string, call: string): <T>(promise: Promise<T>) => Promise<T> {
  const names = ['name', 'rank', 'size', 'ranks', 'localRank', 'localSize', 'hosts', 'backend'];
  return refusingMembers({ what, call, names }, Group.prototype, memberError);
}

const ofSplit = refusingGroup('subgroup', 'group.split()');
const ofSubgroup = refusingGroup('subgroup', 'group.subgroup()');
const ofShrink = refusingGroup('smaller', 'group.shrink()');
