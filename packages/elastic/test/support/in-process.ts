// Members of a job in the process of the test: each joins by joinMembership(), with a real group and a real store.
import { setImmediate } from 'node:timers/promises';
import { joinMembership, type Membership, type MembershipOptions } from '../../src/index.ts';

/** Far above what is needed, for a busy machine. */
const deadlines = { settleMs: 40_000, stallMs: 40_000, joinTimeoutMs: 40_000, connectMs: 40_000 };

export const join = (options: MembershipOptions): Promise<Membership> =>
  joinMembership({ ...deadlines, ...options });

/** Founds a job of `size` members. */
export const foundJob = (size: number, options: MembershipOptions): Promise<Membership[]> =>
  Promise.all(Array.from({ length: size }, () => join({ size, ...options })));

/** Ends a step on all members, and changes the view on those that stay if the vote says so. */
export async function step(members: readonly Membership[], number: number): Promise<boolean> {
  const votes = await Promise.all(members.map((member) => member.vote({ agreed: [number] })));
  // A member that is alone votes without a turn of the event loop, in which it would notice a wish to join.
  await setImmediate();
  const finalSteps = number + 1;
  await Promise.all(
    members.map(async (member, i) => {
      if (votes[i]!.isLeaving) await member.close();
      else if (votes[i]!.changesView) await member.change({ finalSteps, isComplete: false, hasState: true });
    }),
  );
  return votes[0]!.changesView;
}

/** A busy machine needs less. */
const mostMs = 40_000;

/** Takes steps from number `from` on until a vote has changed the view. Returns the number of the next step. */
export async function stepsUntilChange(members: readonly Membership[], from: number): Promise<number> {
  const beganMs = performance.now();
  for (let number = from; performance.now() - beganMs < mostMs; number++)
    if (await step(members, number)) return number + 1;
  throw new Error(`the members did not change the view within ${mostMs} ms`);
}
