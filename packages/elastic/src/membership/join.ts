// Joins a job: as a founding member if it has no view yet, otherwise as one that the present members admit.
import { PrefixStore, type Store, StoreError, TcpStore } from '@ringwise/store';
import { Chain } from './chain.ts';
import { connect } from './connect.ts';
import { Driver } from './driver.ts';
import { storeFailed } from './errors.ts';
import { jobPrefix } from './keys.ts';
import type { Membership } from './membership.ts';
import { type MembershipOptions, planJoin, type StoreAddress } from './options.ts';
import { Machine } from './protocol/machine.ts';
import { Pace } from './protocol/pace.ts';
import type { View } from './protocol/view.ts';
import { Session } from './session.ts';

/**
 * Joins the members of an elastic job, and resolves when this process is connected with them: with the founding
 * members when all of them are there, or later at a vote of the members. Rejects with ERR_ELASTIC_TOO_FEW if that does
 * not happen within `joinTimeoutMs`, and with ERR_ELASTIC_STORE if the store fails.
 *
 * @example
 * ```ts
 * const membership = await joinMembership({ min: 2 }); // under ringwise run --elastic
 * console.log(membership.view.members.map(({ slot }) => slot), membership.group.rank);
 * await membership.close();
 * ```
 */
export async function joinMembership(options: MembershipOptions = {}): Promise<Membership> {
  const plan = planJoin(options, process.env);
  const { self, masterHost, backend, connectMs } = plan;
  const { store, close } = await open(plan.store, plan.settings.joinTimeoutMs);
  try {
    const job = new PrefixStore(jobPrefix(plan.runId), store);
    const chain = new Chain(job);
    const pace = new Pace(plan.patience);
    const machine = new Machine(self.id, plan.settings, pace.patience);
    const hooks = {
      connect: (view: View, signal: AbortSignal) => {
        const rank = view.members.findIndex(({ id }) => id === self.id);
        const timeoutMs = plan.timeoutMs ?? pace.patience.stallMs;
        return connect(view, rank, signal, { store: job, masterHost, backend, timeoutMs, connectMs });
      },
    };
    const driver = new Driver(self, machine, chain, hooks);
    const wishNumber = await chain.wish(self);
    const settled = await driver.run({ kind: 'wished', wishNumber, head: await chain.head() });
    return new Session({ self, machine, chain, pace, driver, settings: plan.settings, close }, settled);
  } catch (error) {
    await close();
    throw error;
  }
}

async function open(
  at: Store | StoreAddress,
  timeoutMs: number,
): Promise<{ readonly store: Store; readonly close: () => Promise<void> }> {
  if (!('port' in at)) return { store: at, close: async () => {} };
  const { host, port, secret } = at;
  try {
    const store = await TcpStore.connect({ host, port, timeoutMs, ...(secret !== null && { secret }) });
    return { store, close: () => store.close() };
  } catch (error) {
    if (!StoreError.isInstance(error)) throw error;
    throw storeFailed('joinMembership', error.message, error);
  }
}
