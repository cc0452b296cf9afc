// init() turns options and the environment into a group that can communicate. Its steps:
//
//   plan        this rank, and the store where the ranks meet          plan.ts
//   backend     found and fit for use on this rank alone               ../backends/registry.ts
//   rendezvous  open the store, wait for all ranks, compare settings   rendezvous.ts
//   backend     exchanges addresses through the store and connects     its factory, such as ../backends/host.ts
import { PrefixStore } from '@ringwise/store';
import type { Backend } from '../backend.ts';
import type { BackendContext, BackendFactory } from '../backends/context.ts';
import { type Found, findBackend } from '../backends/registry.ts';
import { CollectiveError, type Failure, type Site } from '../errors.ts';
import { Group } from '../group/group.ts';
import type { Subgroups } from '../group/members/membership.ts';
import { survivorsIn } from '../group/members/survivors.ts';
import type { InitOptions } from '../options/init-options.ts';
import { cannotTakePart } from './errors.ts';
import { callOff } from './exchange.ts';
import { warnOfFallback } from './fallback.ts';
import { draftInit, type Plan } from './plan.ts';
import { gather, tellOthers } from './rendezvous.ts';
import { withStoreErrors } from './store-errors.ts';

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
export async function init(options: InitOptions = {}): Promise<Group> {
  return await enter(draftInit(options, process.env));
}

/** Options of initMembers(). */
export interface MembersOptions
  extends Omit<InitOptions, 'rank' | 'size' | 'store' | 'timeoutMs'>,
    Required<Pick<InitOptions, 'rank' | 'size' | 'store' | 'timeoutMs'>> {
  /** Deadline of connecting in milliseconds; `timeoutMs` is that of the operations alone. */
  readonly connectMs: number;
  /** Host of the store as the launcher names it, or null. */
  readonly masterHost: string | null;
}

/**
 * Joins a group as init() does, for processes that agree on rank, size and store by themselves. The number of restarts
 * of the launcher does not separate them.
 * @internal
 */
export async function initMembers({ connectMs, masterHost, ...options }: MembersOptions): Promise<Group> {
  const env = { ...process.env, TORCHELASTIC_RESTART_COUNT: undefined };
  const { plan, fault } = draftInit({ ...options, timeoutMs: connectMs }, env);
  const { store } = plan;
  const located = store.kind === 'store' ? { ...store, host: masterHost } : store;
  return await enter({ plan: { ...plan, store: located }, fault }, options.timeoutMs);
}

/** `timeoutMs` is the default deadline of the group's operations. */
async function enter(
  { plan, fault }: ReturnType<typeof draftInit>,
  timeoutMs = plan.timeoutMs,
): Promise<Group> {
  const site = { group: plan.name, rank: plan.rank, size: plan.size };
  const { name: backend, factory, fallback } = await prepared(plan, fault);
  if (fallback !== undefined && plan.rank === 0) warnOfFallback(fallback);
  return withStoreErrors('init', site, () => join({ ...plan, backend }, site, factory, timeoutMs));
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

async function join(plan: Plan, site: Site, factory: BackendFactory, timeoutMs: number): Promise<Group> {
  const { name, rank, size, via, secret } = plan;
  const { store, leave, hosts, placement, masterHost } = await gather(plan, site);
  const { localRank, localSize } = placement;
  const place = { rank, size, localRank, localSize, masterHost, group: name };
  const context = { ...place, store, timeoutMs: plan.timeoutMs, secret };
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

async function makeBackend(factory: BackendFactory, context: BackendContext): Promise<Backend> {
  const store = new PrefixStore('backend', context.store);
  try {
    return await factory({ ...context, store });
  } catch (error) {
    // The others may wait for this rank's address in this store. If the store itself is gone, no rank waits
    // there.
    const what = CollectiveError.is(error) ? error : { what: String(error) };
    await callOff(store, cannotTakePart(context.rank, what)).catch(() => {});
    throw error;
  }
}

/**
 * Returns the function that makes subgroups. Each subgroup has its own prefix in the parent's store and its
 * own backend.
 */
function subgroupsOf(factory: BackendFactory, parent: BackendContext, hosts: readonly string[]): Subgroups {
  return async ({ members, key, name, timeoutMs }) => {
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
    const backend = await makeBackend(factory, context);
    const memberHosts = members.map((member) => hosts[member] as string);
    const survivors = survivorsIn(context.store, { group: name, rank: context.rank, size: context.size });
    return { backend, subgroups: subgroupsOf(factory, context, memberHosts), survivors };
  };
}
