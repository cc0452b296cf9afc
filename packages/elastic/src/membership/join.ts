// Joins a job: as a founding member if it has no view yet, otherwise as a later member that the present members admit.
import { refusingMembers } from '@ringwise/collectives';
import type { Store } from '@ringwise/store';
import { badOptions } from '../errors.ts';
import { Chain } from './chain.ts';
import { connect } from './connect.ts';
import { Driver } from './driver.ts';
import { JobStore } from './job-store.ts';
import type { Membership } from './membership.ts';
import { type MembershipOptions, planJoin } from './options.ts';
import { Machine } from './protocol/machine.ts';
import { Pace } from './protocol/pace.ts';
import type { View, Wish } from './protocol/view.ts';
import { Session } from './session.ts';

/** The parts of a job's store that a process uses in addition to its membership. */
export interface JobAccess {
  readonly self: Wish;
  readonly chain: Chain;
  /** Returns the store with the keys of the job only, which may move to another host. */
  readonly store: () => Store;
  readonly masterHost: string | null;
  readonly backend: string | undefined;
  readonly joinTimeoutMs: number;
}

const notAwaited = refusingMembers(
  { what: 'membership', call: 'joinMembership()', names: [] },
  Session.prototype,
  badOptions,
);

/**
 * Joins the members of an elastic job. Resolves when this process is connected with them: as a founding member when all
 * founding members have come, or later after a vote of the members. Rejects with ERR_ELASTIC_TOO_FEW if that does not
 * happen within `joinTimeoutMs`, and with ERR_ELASTIC_STORE if the store fails.
 *
 * @example
 * ```ts
 * const membership = await joinMembership({ min: 2 }); // under ringwise run --elastic
 * console.log(membership.view.members.map(({ slot }) => slot), membership.group.rank);
 * await membership.close();
 * ```
 */
export function joinMembership(options: MembershipOptions = {}): Promise<Membership> {
  return notAwaited(joinJob(options, async () => {}));
}

/** Does the same as joinMembership(), but awaits `prepare` before the members know of this process. */
export async function joinJob(
  options: MembershipOptions,
  prepare: (access: JobAccess) => Promise<void>,
): Promise<Membership> {
  const plan = planJoin(options, process.env);
  const { self, masterHost, backend, connectMs, settings } = plan;
  const store = await JobStore.open(plan);
  const close = () => store.close();
  try {
    const chain = new Chain(store);
    const pace = new Pace(plan.patience);
    const machine = new Machine(self.id, settings, pace.patience);
    const hooks = {
      connect: (view: View, signal: AbortSignal) => {
        const rank = view.members.findIndex(({ id }) => id === self.id);
        const timeoutMs = plan.timeoutMs ?? pace.patience.stallMs;
        return connect(view, rank, signal, { store: store.job, masterHost, backend, timeoutMs, connectMs });
      },
      move: (view: View, signal: AbortSignal) => store.move(view, signal),
    };
    const driver = new Driver(self, machine, chain, hooks);
    const { joinTimeoutMs } = settings;
    await prepare({ self, chain, store: () => store.job, masterHost, backend, joinTimeoutMs });
    const wishNumber = await chain.wish(self);
    const settled = await driver.run({ kind: 'wished', wishNumber, head: await chain.head() });
    return new Session({ self, machine, chain, pace, driver, settings, close }, settled);
  } catch (error) {
    await close();
    throw error;
  }
}
