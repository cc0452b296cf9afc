// Makes the group of a view. Members may be lost while they connect, so connecting can be stopped at any time: the
// store then refuses all further calls, which ends the rendezvous, and a group that is connected too late is closed.
import { type Group, initMembers, type MembersOptions, untilAborted } from '@ringwise/collectives';
import { PrefixStore, type Store } from '@ringwise/store';
import { changeReason, rootOf } from './classify.ts';
import { groupPrefix } from './keys.ts';
import { hasEnded } from './processes.ts';
import type { Report, View } from './protocol/view.ts';

const graceMs = 2_000;

export interface Connecting {
  /** Store with the keys of the job only. */
  readonly store: Store;
  /** Name of the host of the store, or null. */
  readonly masterHost: string | null;
  readonly backend: string | undefined;
  /** Default deadline of the group's operations. */
  readonly timeoutMs: number;
  /** Deadline of connecting. */
  readonly connectMs: number;
}

/**
 * Connects this member, which is `rank` in `view`. Collective. Rejects at the deadline, or when `signal` is aborted.
 */
export async function connect(
  view: View,
  rank: number,
  signal: AbortSignal,
  { store, masterHost, backend, timeoutMs, connectMs }: Connecting,
): Promise<Group> {
  // This limit is a safeguard: initMembers() rejects earlier, at connectMs, with the names of the missing members.
  const ended = AbortSignal.any([signal, AbortSignal.timeout(2 * connectMs + graceMs)]);
  ended.throwIfAborted();
  // The connected group continues to use the store for its subgroups, so the store rejects calls only if `ended` is
  // aborted before that.
  const refusal = new AbortController();
  const refuse = () => refusal.abort(ended.reason);
  ended.addEventListener('abort', refuse, { once: true });
  const group = meet({
    store: endable(new PrefixStore(groupPrefix(view.number), store), refusal.signal),
    rank,
    hosts: view.members.map(({ host }) => host),
    name: `view ${view.number}`,
    timeoutMs,
    connectMs,
    masterHost,
    signal: refusal.signal,
    instead:
      'Each view of the job has a group of its own: read job.group or membership.group again, do not keep it.',
    ...(backend !== undefined && { backend }),
  });
  group.then(
    (connected) => {
      ended.removeEventListener('abort', refuse);
      if (refusal.signal.aborted) connected.close().catch(() => {});
    },
    () => {},
  );
  return await untilAborted(refusal.signal, group);
}

/**
 * Connects, and waits until all other members are connected: a member that cannot reach another one reports that at its
 * connect deadline, before the others stop waiting for it.
 */
async function meet(options: MembersOptions & { readonly signal: AbortSignal }): Promise<Group> {
  const { signal } = options;
  const group = await initMembers(options);
  // The other members of this view wait at this barrier as well; aborting the group spares them the wait until their
  // deadline.
  const stop = () => group.abort(changeReason(signal.reason));
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  try {
    await group.barrier({ timeoutMs: options.connectMs });
    return group;
  } catch (error) {
    await group.close().catch(() => {});
    throw new Stopped(error);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Thrown if a connected group has failed before all members were connected. */
class Stopped extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause));
  }
}

/** Returns the members other than `self` that an error, of connecting or of the group of `view`, names. */
export function namedBy(error: unknown, view: View, self: string): Report['unreachable'] {
  const failure = rootOf(error);
  if (failure === null) return [];
  const own = view.members.find(({ id }) => id === self)!;
  return failure.peers.flatMap((peer) => {
    const member = view.members[peer];
    if (member === undefined || member.id === self) return [];
    return [{ member: member.id, isCertain: member.host === own.host && hasEnded(member.process) }];
  });
}

/**
 * Returns the members that this one could not reach by the connect deadline. Leaves out members that have stopped
 * connecting, because they may be reachable.
 */
export function missedBy(error: unknown, view: View, self: string): Report['unreachable'] {
  const code = rootOf(error)?.code;
  return code === 'ERR_COLL_INIT' || code === 'ERR_COLL_TIMEOUT' ? namedBy(error, view, self) : [];
}

/** Returns a store whose pending and later calls reject once `ended` is aborted. */
export function endable(store: Store, ended: AbortSignal): Store {
  const stopped = new Promise<never>((_, reject) => {
    ended.addEventListener('abort', () => reject(ended.reason), { once: true });
  });
  stopped.catch(() => {});
  const race = <T>(call: () => Promise<T>): Promise<T> =>
    ended.aborted ? Promise.reject(ended.reason) : Promise.race([call(), stopped]);
  const options = (given: object | undefined) => ({ ...given, signal: ended });
  return {
    timeoutMs: store.timeoutMs,
    set: (key, value) => race(() => store.set(key, value)),
    get: (key, given) => race(() => store.get(key, options(given))),
    add: (key, amount) => race(() => store.add(key, amount)),
    compareSet: (key, expected, desired) => race(() => store.compareSet(key, expected, desired)),
    wait: (keys, given) => race(() => store.wait(keys, options(given))),
    check: (keys) => race(() => store.check(keys)),
    delete: (key) => race(() => store.delete(key)),
    numKeys: () => race(() => store.numKeys()),
    append: (key, value) => race(() => store.append(key, value)),
    multiGet: (keys, given) => race(() => store.multiGet(keys, options(given))),
    multiSet: (entries) => race(() => store.multiSet(entries)),
    close: () => Promise.resolve(),
  };
}
