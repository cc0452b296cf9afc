// A group of ranks and the verbs on it. Each verb exists twice, like Node's fs: the plain form starts the operation
// and returns a Work, the Sync form blocks until it has ended. What a verb does with its arguments is in verbs/, how
// a call runs in calls.ts.
//
// An argument error is reported before anything is sent, so it does not harm the group: the Sync form throws it,
// the plain form returns a Work that rejects with it. Every other error poisons the group for good.

import type { Backend, Supports } from '../backend.ts';
import type { NarrowFloat } from '../backends/arithmetic/narrow-floats.ts';
import { type DType, dtypes } from '../dtype.ts';
import {
  aborted,
  badAllocCount,
  CollectiveError,
  groupClosed,
  memoryNotVisible,
  noSubgroups,
  noSurvivors,
  unknownDtype,
} from '../errors.ts';
import type { FlightEntry } from '../flight/entry.ts';
import type { Via } from '../init/env.ts';
import { hostsOfMembers, onOneHost } from '../init/placement.ts';
import { badTimeout, isTimeout, shown } from '../options/errors.ts';
import type { GroupOptions } from '../options/group-options.ts';
import { checkGroupOptions, optionsFault } from '../options/known-options.ts';
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
import { allToAll } from '../verbs/all-to-all.ts';
import { batch, recv, send } from '../verbs/messages.ts';
import { monitoredBarrier } from '../verbs/monitored-barrier.ts';
import * as objects from '../verbs/objects.ts';
import { allGather, gather, reduceScatter, scatter } from '../verbs/parts.ts';
import { allReduce, barrier, broadcast, reduce } from '../verbs/reduce.ts';
import { type ArrayOf, asBuffer, type BufferLike, isPlain } from './buffer.ts';
import { Calls } from './calls.ts';
import type { Steps } from './steps.ts';
import { membersByColor, membersByList, nameOf } from './subgroups.ts';
import { candidatesOf } from './survivors.ts';
import type { Work } from './work.ts';

export type { ReduceOptions } from '../options/options.ts';

/** What alloc() returns: a typed array, or `{ data, dtype }` for the types that have none. */
export type Allocated<D extends DType> = D extends NarrowFloat | 'bool'
  ? { readonly data: ArrayOf<D>; readonly dtype: D }
  : ArrayOf<D>;

const none = Object.freeze({});

/**
 * All ranks make the same calls in the same order; messages may come in any order. Buffers belong to the group from
 * the call until the operation has ended: do not write to them, do not read results, do not transfer them. Two
 * pending operations must not share memory. Collectives run in call order; messages run beside them.
 *
 * Where a verb takes `Buffers`, it takes one buffer, or a list of them that travel in one call.
 */
export class Group {
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  /** The rank that each rank has in the outermost group, of which this is a part of a part. */
  readonly ranks: readonly number[];
  /**
   * Number of this process among the processes of its host, from 0; `cuda:${group.localRank}` is its device. It counts
   * the ranks of the outermost group, in a subgroup too: so a process has one device, whatever groups it is in.
   */
  readonly localRank: number;
  /** Ranks of the outermost group on this host. */
  readonly localSize: number;
  /** The ranks of this group by host, in order: `hosts.length` hosts, that of rank 0 first. Empty after joinNccl(). */
  readonly hosts: readonly (readonly number[])[];
  /** The launcher that told this process its rank, such as 'slurm'; null where none did, and for a subgroup. */
  readonly via: Via | null;
  /** Name of the backend, such as 'host'. */
  readonly backend: string;
  readonly supports: Supports;
  /** Default deadline of the operations, in milliseconds. */
  readonly timeoutMs: number;
  readonly #calls: Calls;
  readonly #options: GroupOptions;
  readonly #children = new Set<Group>();
  /** Calls of split() and subgroup() so far: the same on all ranks. */
  #subgroups = 0;
  /** Calls of shrink() so far: the same on all survivors. */
  #shrinks = 0;
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
    this.#calls = new Calls(backend, options.name, options.timeoutMs, this);
    this.#options = options;
  }

  /** The first error, after which every call fails; null while the group works. */
  get failure(): CollectiveError | null {
    return this.#calls.failure;
  }

  get isClosed(): boolean {
    return this.#closing !== null;
  }

  /**
   * What this rank has called last on this group, in order, and what became of it: the last 1,024 operations on the
   * host backend, where what has not ended is kept for longer, and 256 on others. Not collective, does not block; also
   * after a failure or close().
   */
  flightRecord(): readonly FlightEntry[] {
    return this.#calls.flightRecord();
  }

  /** What carried out the last operation that ended well, such as 'board one-shot'; null where nobody tells. */
  get lastAlgorithm(): string | null {
    return this.flightRecord().findLast(({ state }) => state === 'done')?.algorithm ?? null;
  }

  /** Replaces `buffers` on every rank by the reduction of all ranks' buffers. */
  allReduce(buffers: Buffers, options: AllReduceOptions = none): Work {
    return this.#calls.start('allReduce', () => allReduce(this.#calls, buffers, options));
  }
  allReduceSync(buffers: Buffers, options: AllReduceOptions = none): void {
    const calls = this.#calls.blocking('allReduce');
    calls.run('allReduce', allReduce(calls, buffers, options));
  }

  /** Replaces the root's `buffers` by the reduction of all ranks' buffers; those of other ranks stay as they are. */
  reduce(buffers: Buffers, options: ReduceOptions & RootOptions = none): Work {
    return this.#calls.start('reduce', () => reduce(this.#calls, buffers, options));
  }
  reduceSync(buffers: Buffers, options: ReduceOptions & RootOptions = none): void {
    const calls = this.#calls.blocking('reduce');
    calls.run('reduce', reduce(calls, buffers, options));
  }

  /** Copies the root's `buffers` into those of every other rank. */
  broadcast(buffers: Buffers, options: RootOptions = none): Work {
    return this.#calls.start('broadcast', () => broadcast(this.#calls, buffers, options));
  }
  broadcastSync(buffers: Buffers, options: RootOptions = none): void {
    const calls = this.#calls.blocking('broadcast');
    calls.run('broadcast', broadcast(calls, buffers, options));
  }

  /**
   * Writes all ranks' `input`, in rank order, to `output`: separate memory, `size` times as long, or a list with a
   * buffer for each rank. Many buffers in one call: lists of inputs and of outputs.
   */
  allGather(input: Buffers, output: Buffers, options: CountsOptions = none): Work {
    return this.#calls.start('allGather', () => allGather(this.#calls, input, output, options));
  }
  allGatherSync(input: Buffers, output: Buffers, options: CountsOptions = none): void {
    const calls = this.#calls.blocking('allGather');
    calls.run('allGather', allGather(calls, input, output, options));
  }

  /** Like allGather, but only the root has an `output`; the others pass null. */
  gather(input: Buffers, output: Buffers | null, options: RootOptions & CountsOptions = none): Work {
    return this.#calls.start('gather', () => gather(this.#calls, input, output, options));
  }
  gatherSync(input: Buffers, output: Buffers | null, options: RootOptions & CountsOptions = none): void {
    const calls = this.#calls.blocking('gather');
    calls.run('gather', gather(calls, input, output, options));
  }

  /** Cuts the root's `input` into a part for each rank, and writes part `rank` to `output`. The others pass null. */
  scatter(input: Buffers | null, output: Buffers, options: RootOptions & CountsOptions = none): Work {
    return this.#calls.start('scatter', () => scatter(this.#calls, input, output, options));
  }
  scatterSync(input: Buffers | null, output: Buffers, options: RootOptions & CountsOptions = none): void {
    const calls = this.#calls.blocking('scatter');
    calls.run('scatter', scatter(calls, input, output, options));
  }

  /**
   * Reduces all ranks' `input`, cuts the result into a part for each rank, and writes part `rank` to `output`. `input` is
   * null only with `contributions`.
   */
  reduceScatter(input: Buffers | null, output: Buffers, options: ReduceOptions & CountsOptions = none): Work {
    return this.#calls.start('reduceScatter', () => reduceScatter(this.#calls, input, output, options));
  }
  reduceScatterSync(
    input: Buffers | null,
    output: Buffers,
    options: ReduceOptions & CountsOptions = none,
  ): void {
    const calls = this.#calls.blocking('reduceScatter');
    calls.run('reduceScatter', reduceScatter(calls, input, output, options));
  }

  /** Sends part r of `input` to rank r, and writes what rank r sends to part r of `output`. Buffers, or lists of parts. */
  allToAll(input: Buffers, output: Buffers, options: AllToAllOptions = none): Work {
    return this.#calls.start('allToAll', () => allToAll(this.#calls, input, output, options));
  }
  allToAllSync(input: Buffers, output: Buffers, options: AllToAllOptions = none): void {
    const calls = this.#calls.blocking('allToAll');
    calls.run('allToAll', allToAll(calls, input, output, options));
  }

  /** Sends to one rank, which must call recv() with the same tag, count and dtype. May end before it does. */
  send(buffer: BufferLike, to: number, options: MessageOptions = none): Work {
    return this.#calls.start('send', () => send(this.#calls, buffer, to, options));
  }
  sendSync(buffer: BufferLike, to: number, options: MessageOptions = none): void {
    const calls = this.#calls.blocking('send');
    calls.run('send', send(calls, buffer, to, options));
  }

  /** Receives the first message with that tag from `from`, or from anySource. Gives the sender's rank. */
  recv(buffer: BufferLike, from: Source, options: MessageOptions = none): Work<number> {
    return this.#calls.start('recv', () => recv(this.#calls, buffer, from, options));
  }
  recvSync(buffer: BufferLike, from: Source, options: MessageOptions = none): number {
    const calls = this.#calls.blocking('recv');
    return calls.run('recv', recv(calls, buffer, from, options));
  }

  /** Starts several sends and receives together. Gives the rank of the other side of each. */
  batch(messages: readonly Message[], options: CallOptions = none): Work<number[]> {
    return this.#calls.start('batch', () => batch(this.#calls, messages, options));
  }
  batchSync(messages: readonly Message[], options: CallOptions = none): number[] {
    const calls = this.#calls.blocking('batch');
    return calls.run('batch', batch(calls, messages, options));
  }

  /** Ends when every rank has called it. */
  barrier(options: CollectiveOptions = none): Work {
    return this.#calls.start('barrier', () => barrier(this.#calls, options));
  }
  barrierSync(options: CollectiveOptions = none): void {
    const calls = this.#calls.blocking('barrier');
    calls.run('barrier', barrier(calls, options));
  }

  /**
   * A slower barrier whose error names all ranks that have not come, on every rank that has. Like every timeout it
   * poisons the group.
   */
  monitoredBarrier(options: CollectiveOptions = none): Work {
    return this.#calls.start('monitoredBarrier', () => monitoredBarrier(this.#calls, options));
  }
  monitoredBarrierSync(options: CollectiveOptions = none): void {
    const calls = this.#calls.blocking('monitoredBarrier');
    calls.run('monitoredBarrier', monitoredBarrier(calls, options));
  }

  // The object forms: anything that structured clone takes, up to 1 GiB. Every rank gets a copy.

  /** Gives the root's `value` to every rank; that of other ranks is not looked at. */
  broadcastObject<T>(value: T | undefined, options: RootOptions = none): Work<T> {
    return this.#calls.start('broadcastObject', () => objects.broadcastObject(this.#calls, value, options));
  }
  broadcastObjectSync<T>(value: T | undefined, options: RootOptions = none): T {
    const calls = this.#calls.blocking('broadcastObject');
    return calls.run('broadcastObject', objects.broadcastObject(calls, value, options));
  }

  /** Gives all ranks' values, in rank order, to every rank. */
  allGatherObject<T>(value: T, options: CollectiveOptions = none): Work<T[]> {
    return this.#calls.start('allGatherObject', () => objects.allGatherObject(this.#calls, value, options));
  }
  allGatherObjectSync<T>(value: T, options: CollectiveOptions = none): T[] {
    const calls = this.#calls.blocking('allGatherObject');
    return calls.run('allGatherObject', objects.allGatherObject(calls, value, options));
  }

  /** Gives all ranks' values to the root, and null to the others. */
  gatherObject<T>(value: T, options: RootOptions = none): Work<T[] | null> {
    return this.#calls.start('gatherObject', () => objects.gatherObject(this.#calls, value, options));
  }
  gatherObjectSync<T>(value: T, options: RootOptions = none): T[] | null {
    const calls = this.#calls.blocking('gatherObject');
    return calls.run('gatherObject', objects.gatherObject(calls, value, options));
  }

  /** Gives value r of the root's list to rank r; the list of other ranks is not looked at. */
  scatterObject<T>(values: readonly T[] | null, options: RootOptions = none): Work<T> {
    return this.#calls.start('scatterObject', () => objects.scatterObject(this.#calls, values, options));
  }
  scatterObjectSync<T>(values: readonly T[] | null, options: RootOptions = none): T {
    const calls = this.#calls.blocking('scatterObject');
    return calls.run('scatterObject', objects.scatterObject(calls, values, options));
  }

  /** Sends a value to one rank, which must call recvObject() with the same tag. */
  sendObject<T>(value: T, to: number, options: MessageOptions = none): Work {
    return this.#calls.start('sendObject', () => objects.sendObject(this.#calls, value, to, options));
  }
  sendObjectSync<T>(value: T, to: number, options: MessageOptions = none): void {
    const calls = this.#calls.blocking('sendObject');
    calls.run('sendObject', objects.sendObject(calls, value, to, options));
  }

  /** Receives the first object with that tag from `from`, or from anySource. */
  recvObject<T>(from: Source, options: MessageOptions = none): Work<Received<T>> {
    return this.#calls.start('recvObject', () => objects.recvObject<T>(this.#calls, from, options));
  }
  recvObjectSync<T>(from: Source, options: MessageOptions = none): Received<T> {
    const calls = this.#calls.blocking('recvObject');
    return calls.run('recvObject', objects.recvObject<T>(calls, from, options));
  }

  /**
   * Makes a group of the ranks that give the same `color`, ordered by `key` and then by rank; null for a rank whose
   * color is null. Collective over this group. Closing this group closes it too.
   */
  split(color: number | null, key = this.rank, options: SubgroupOptions = none): Promise<Group | null> {
    return this.#subgroup('split', options, (calls) => membersByColor(calls, color, key));
  }

  /** Makes a group of these ranks, in this order; null for the others. Collective over this group, like split(). */
  subgroup(ranks: readonly number[], options: SubgroupOptions = none): Promise<Group | null> {
    return this.#subgroup('subgroup', options, (calls) => membersByList(calls, ranks));
  }

  /**
   * Makes a group of the ranks that are left when this one has failed: they keep their order, and it works where others
   * were lost. Collective over the survivors, which meet in the store that init() met in; it must have outlived the
   * failure. Closing this group closes it too. ERR_COLL_INIT on a rank that the others have gone on without.
   */
  async shrink(options: ShrinkOptions = none): Promise<Group> {
    const calls = this.#calls;
    checkGroupOptions(calls, 'shrink', options);
    const { waitMs = 10_000 } = options;
    if (!(waitMs === 0 || isTimeout(waitMs))) throw calls.error(badTimeout('shrink', waitMs, 'waitMs'));
    if (this.isClosed) throw calls.error(groupClosed('shrink'));
    const { survivors } = this.#options;
    if (survivors === undefined) throw calls.error(noSurvivors());
    const candidates = candidatesOf(calls, options.without);
    const attempt = this.#shrinks++;
    const members = await survivors(candidates, attempt, waitMs);
    return this.#child(members, `shrunk/${attempt}`, options);
  }

  /** Zeroed memory that the backend reaches without a copy where it can. Not collective. */
  alloc<D extends DType = 'float32'>(count: number, dtype: D = 'float32' as D): Allocated<D> {
    const calls = this.#calls;
    calls.checkOpen('alloc');
    if (!Number.isSafeInteger(count) || count < 0) throw calls.error(badAllocCount(shown(count)));
    if (!dtypes.includes(dtype)) throw calls.error(unknownDtype('alloc', String(dtype), dtypes));
    const { host: data } = calls.alloc(count, dtype);
    if (data === null) throw calls.error(memoryNotVisible(this.backend));
    return (isPlain(dtype) ? data : { data, dtype }) as Allocated<D>;
  }

  /**
   * Says that collectives will be called on this memory often, each time on all of it: where it lies on a device, NCCL may
   * then reach it without copies of its own. It has to be kept until the function that this returns has been called, which
   * takes it back. Both are no collectives, but all ranks do them at the same places among theirs. Elsewhere it does nothing.
   */
  register(buffer: BufferLike): () => void {
    this.#calls.checkOpen('register');
    return this.#calls.register(asBuffer(buffer, 'register'));
  }

  /** Fails everything pending and later on all ranks with ERR_COLL_ABORTED, also in this rank's subgroups. */
  abort(reason: unknown = 'no reason given'): void {
    for (const child of this.#children) child.abort(reason);
    if (this.failure !== null || this.isClosed) return;
    const isError = reason instanceof Error;
    const failure = aborted(this.rank, isError ? reason.message : String(reason));
    this.#calls.abort(this.#calls.error(failure, isError ? { cause: reason } : undefined));
  }

  /**
   * Closes the subgroups, waits until what is pending has ended, then leaves. Later calls fail. Rejects with
   * ERR_COLL_MISMATCH where ranks have disagreed and no call of this rank has told so. Idempotent.
   */
  close(): Promise<void> {
    this.#closing ??= this.#leave();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #leave(): Promise<void> {
    this.#calls.shut();
    try {
      const children = await Promise.allSettled([...this.#children].map((child) => child.close()));
      await this.#calls.leave();
      for (const child of children) if (child.status === 'rejected') throw child.reason;
    } finally {
      await this.#options.onClose?.();
    }
  }

  async #subgroup(
    verb: 'split' | 'subgroup',
    options: SubgroupOptions,
    build: (calls: Calls) => Steps<number[] | null>,
  ): Promise<Group | null> {
    const calls = this.#calls;
    let index = 0;
    const members = await calls.start(verb, () => {
      if (this.#options.subgroups === undefined) throw calls.error(noSubgroups(verb));
      checkGroupOptions(calls, verb, options);
      const steps = build(calls);
      index = this.#subgroups++;
      return steps;
    });
    return members && this.#child(members, `${index}/${members[0]}`, options);
  }

  /** `key`: no other child has it. */
  async #child(members: readonly number[], key: string, options: SubgroupOptions): Promise<Group> {
    const { name = nameOf(this.name, members), timeoutMs = this.timeoutMs } = options;
    const connected = await this.#options.subgroups!({ members, key, name, timeoutMs });
    const ranks = members.map((member) => this.ranks[member] as number);
    const { localRank, localSize } = this;
    const placement = { localRank, localSize, hosts: hostsOfMembers(this.hosts, members) };
    const onClose = async () => void this.#children.delete(child);
    const { backend, subgroups, survivors } = connected;
    const child: Group = new Group(backend, {
      name,
      timeoutMs,
      ranks,
      placement,
      subgroups,
      ...(survivors && { survivors }),
      onClose,
    });
    this.#children.add(child);
    if (this.isClosed) await child.close();
    return child;
  }
}
