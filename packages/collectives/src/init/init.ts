// init() turns options and the environment into a group that can communicate. Its steps:
//
//   plan        this rank, and the store where the ranks meet          plan.ts
//   backend     found and fit for use on this rank alone               ../backends/registry.ts
//   rendezvous  open the store, wait for all ranks, compare settings   rendezvous.ts
//   backend     exchanges addresses through the store and connects     its factory, such as ../backends/host.ts
import { hostname } from 'node:os';
import { PrefixStore, type Store } from '@ringwise/store';
import type { Backend } from '../backend.ts';
import type { BackendContext, BackendFactory } from '../backends/context.ts';
import { type Found, findBackend } from '../backends/registry.ts';
import { CollectiveError, type Failure, type Site } from '../errors.ts';
import { Group, refusingGroup } from '../group/group.ts';
import type { Subgroups } from '../group/members/membership.ts';
import { survivorsIn } from '../group/members/survivors.ts';
import type { InitOptions } from '../options/init-options.ts';
import { cannotTakePart, notABackend, settingsDiffer, soloForMany } from './errors.ts';
import { callOff } from './exchange.ts';
import { warnOfFallback } from './fallback.ts';
import { placementOf } from './placement.ts';
import { draftInit, type Plan } from './plan.ts';
import { gather, tellOthers } from './rendezvous.ts';
import { secretOf } from './secret.ts';
import { withStoreErrors } from './store-errors.ts';

const notAwaited = refusingGroup('group', 'init()');

/**
 * Joins the group of all ranks. Collective; resolves when this rank can communicate with all others. Without
 * options all settings come from the launcher's environment; a process without a launcher is a group of one.
 * Rejects with ERR_COLL_INIT if ranks do not arrive within `timeoutMs` milliseconds, and names them.
 *
 * @example
 * ```ts
 * const group = await init(); // under ringwise run, torchrun, srun, mpirun …
 * const x = Float32Array.of(group.rank);
 * await group.allReduce(x); // the sum over all ranks
 * await group.close();
 * ```
 */
export function init(options: InitOptions = {}): Promise<Group> {
  return notAwaited(start(options));
}

async function start(options: InitOptions): Promise<Group> {
  const { plan, fault } = draftInit(options, process.env);
  const site = { group: plan.name, rank: plan.rank, size: plan.size };
  const { name: backend, factory, fallback } = await prepared(plan, fault);
  if (fallback !== undefined && plan.rank === 0) warnOfFallback(fallback);
  return withStoreErrors('init', site, () => join({ ...plan, backend }, site, factory));
}

/** Options of initMembers(). */
export interface MembersOptions {
  /** Store with keys of this group only. */
  readonly store: Store;
  /** Rank of this process in the group. */
  readonly rank: number;
  /** Id of each rank's host, as hostId() returns it there; as many as there are ranks. */
  readonly hosts: readonly string[];
  /** Name of the group, for error messages. */
  readonly name: string;
  /** Name of a backend, or 'auto'. Default: RINGWISE_BACKEND, or 'auto'. */
  readonly backend?: string;
  /** Default deadline of the operations, and deadline of connecting, in milliseconds. */
  readonly timeoutMs: number;
  /** Deadline of connecting, in milliseconds. */
  readonly connectMs: number;
  /** Host of the store as the launcher names it, or null. */
  readonly masterHost: string | null;
  /** Ends connecting, with its reason. */
  readonly signal?: AbortSignal;
  /** Sentence for errors of calls on the group after it is closed or has failed: how to get another one. */
  readonly instead?: string;
}

const backendKey = 'backend name';

/**
 * Keys that a group of initMembers() leaves in its store. The caller deletes them when all ranks have the group.
 * @internal
 */
export const memberKeys: readonly string[] = [backendKey];

/**
 * Makes the group of ranks that know each other already, and so need no rendezvous. Collective. Rejects with
 * ERR_COLL_INIT if ranks do not connect within `connectMs`, or use different backends.
 * @internal
 */
export async function initMembers(options: MembersOptions): Promise<Group> {
  const { store, rank, hosts, name, timeoutMs, connectMs, masterHost, signal } = options;
  const size = hosts.length;
  const site = { group: name, rank, size };
  const wanted = options.backend ?? (process.env.RINGWISE_BACKEND || 'auto');
  if (wanted === 'solo' && size > 1) throw new CollectiveError(soloForMany(size), site);
  const found = await findBackend(wanted === 'auto' && size === 1 ? 'solo' : wanted);
  const hostInfos = hosts.map((host) => ({ host, localRank: null, devices: '' }));
  const placement = placementOf(rank, hostInfos);
  const { localRank, localSize } = placement;
  const context: BackendContext = {
    ...{ store, rank, size, localRank, localSize, group: name },
    masterHost: masterHost ?? hostname(),
    timeoutMs: connectMs,
    secret: secretOf(process.env),
  };
  return await withStoreErrors('init', site, async () => {
    const [backend] = await Promise.all([
      makeBackend(found.factory, { ...context, ...(signal && { signal }) }),
      compareBackends(store, site, found.name),
    ]);
    const subgroups = subgroupsOf(found.factory, context, hosts);
    const survivors = survivorsIn(store, site);
    const { instead } = options;
    return new Group(backend, {
      ...{ name, timeoutMs, placement, subgroups, survivors },
      ...(instead !== undefined && { instead }),
    });
  });
}

/** Ends the meeting of all ranks if this rank's backend is not that of the first one. */
async function compareBackends(store: Store, site: Site, backend: string): Promise<void> {
  const mine = { rank: site.rank, value: backend };
  const stored = await store.compareSet(backendKey, '', JSON.stringify(mine));
  const first = JSON.parse(Buffer.from(stored).toString()) as typeof mine;
  if (first.value === backend) return;
  const failure = settingsDiffer('backend', mine, first);
  await callOff(new PrefixStore('backend', store), failure);
  throw new CollectiveError(failure, site);
}

/**
 * Finds the backend and checks whether this rank can take part, without other ranks. If it cannot, tells the
 * other ranks, so that they do not wait for it.
 */
async function prepared(plan: Plan, fault: Failure | null): Promise<Found> {
  try {
    if (fault !== null) throw new CollectiveError(fault, null);
    return await findBackend(plan.backend);
  } catch (error) {
    if (CollectiveError.is(error)) await tellOthers(plan, cannotTakePart(plan.rank, error));
    throw error;
  }
}

async function join(plan: Plan, site: Site, factory: BackendFactory): Promise<Group> {
  const { name, rank, size, via, timeoutMs, secret } = plan;
  const { store, leave, hosts, placement, masterHost } = await gather(plan, site);
  const { localRank, localSize } = placement;
  const context = { store, rank, size, localRank, localSize, masterHost, group: name, timeoutMs, secret };
  let backend: Backend;
  try {
    backend = await makeBackend(factory, context);
  } catch (error) {
    await leave(true);
    throw error;
  }
  const subgroups = subgroupsOf(factory, context, hosts);
  const survivors = survivorsIn(store, site);
  const onClose = () => leave(group.failure === null);
  const group: Group = new Group(backend, { name, via, timeoutMs, placement, subgroups, survivors, onClose });
  return group;
}

/** Members that a group uses of every backend, whatever it supports. */
const neededMembers = ['name', 'rank', 'size', 'supports', 'start', 'alloc', 'abort', 'close'] as const;

async function makeBackend(factory: BackendFactory, context: BackendContext): Promise<Backend> {
  const store = new PrefixStore('backend', context.store);
  try {
    const backend = await factory({ ...context, store });
    if ((backend as Backend | undefined)?.contract !== 1) throw new CollectiveError(notABackend(), null);
    const missing = neededMembers.filter((member) => backend[member] === undefined);
    if (missing.length > 0) throw new CollectiveError(notABackend(missing), null);
    return backend;
  } catch (error) {
    // If the store itself is gone, no rank waits there.
    await tellMembers(context, error).catch(() => {});
    throw error;
  }
}

/** Tells the ranks that wait for this rank's address why it cannot take part in their group. */
async function tellMembers({ store, rank }: BackendContext, error: unknown): Promise<void> {
  const reason = CollectiveError.is(error) ? error : { what: String(error) };
  await callOff(new PrefixStore('backend', store), cannotTakePart(rank, reason));
}

/**
 * Returns the function that makes subgroups. Each subgroup has its own prefix in the parent's store and its
 * own backend.
 */
function subgroupsOf(factory: BackendFactory, parent: BackendContext, hosts: readonly string[]): Subgroups {
  return async ({ members, key, name, timeoutMs, signal }) => {
    const here = members.filter((member) => hosts[member] === hosts[parent.rank]);
    const context = {
      ...parent,
      store: new PrefixStore(`subgroup/${key}`, parent.store),
      rank: members.indexOf(parent.rank),
      size: members.length,
      localRank: here.indexOf(parent.rank),
      localSize: here.length,
      group: name,
      timeoutMs,
    };
    // The members that wait for this rank's address must not wait longer.
    const tell = () => void tellMembers(context, signal?.reason).catch(() => {});
    signal?.addEventListener('abort', tell, { once: true });
    const backend = await makeBackend(factory, { ...context, ...(signal && { signal }) });
    const memberHosts = members.map((member) => hosts[member] as string);
    const survivors = survivorsIn(context.store, { group: name, rank: context.rank, size: context.size });
    return { backend, subgroups: subgroupsOf(factory, context, memberHosts), survivors };
  };
}
