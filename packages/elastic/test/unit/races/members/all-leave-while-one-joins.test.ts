// Race 7, the members that leave: all members with the state want to leave in the step in which a process wishes to
// join. They let it in first, so that the training is not lost, and leave after the next step.
import { setTimeout as sleep } from 'node:timers/promises';
import { MemoryStore, PrefixStore } from '@ringwise/store';
import { expect, test } from 'vitest';
import { jobPrefix, wishKey } from '../../../../src/membership/keys.ts';
import { foundJob, join, step } from '../../../support/in-process.ts';

/**
 * Waits until the members have seen a wish that is in the store. They look every 100 ms, by timers of this event loop;
 * of timers that end together, because the process stood still, theirs may be later than one of these, not than all.
 */
async function untilSeen(): Promise<void> {
  for (let times = 0; times < 4; times++) await sleep(100);
}

for (const size of [1, 2])
  test(`${size} of ${size} leave: the joiner is in the next view with them`, async () => {
    const options = { store: new MemoryStore(), runId: 'leave' };
    const members = await foundJob(size, options);
    expect(await step(members, 0)).toBe(false);
    const joins = join({ size, ...options });
    await new PrefixStore(jobPrefix(options.runId), options.store).wait([wishKey(size + 1)]);
    await untilSeen();
    for (const member of members) member.leave();
    const votes = await Promise.all(members.map((member) => member.vote({ agreed: [1] })));
    for (const vote of votes) expect(vote).toEqual({ changesView: true, isLeaving: false });
    const progress = { finalSteps: 2, isComplete: false, hasState: true };
    const [joiner, ...changes] = await Promise.all([
      joins,
      ...members.map((member) => member.change(progress)),
    ]);
    expect(joiner.view).toMatchObject({ number: 1, finalSteps: 2 });
    expect(joiner.view.members).toHaveLength(size + 1);
    for (const { joined } of changes) expect(joined).toEqual([size]);
    // The state has been given here. The next vote has the joiner, which stays.
    const all = [...members, joiner];
    const last = await Promise.all(all.map((member) => member.vote({ agreed: [2], finalSteps: 2 })));
    expect(last.map(({ isLeaving }) => isLeaving)).toEqual([...members.map(() => true), false]);
    await Promise.all(members.map((member) => member.close()));
    await joiner.change({ finalSteps: 3, isComplete: false, hasState: true });
    expect(joiner.view).toMatchObject({ number: 2, finalSteps: 3, lost: [] });
    expect(joiner.group.size).toBe(1);
    await joiner.close();
  });

test('members whose training is over do not wait for a joiner', async () => {
  const options = { store: new MemoryStore(), runId: 'over' };
  const [member] = await foundJob(1, options);
  expect(await step([member!], 0)).toBe(false);
  const joins = join({ size: 1, ...options }).then(
    () => 'joined',
    ({ code }: { readonly code: string }) => code,
  );
  await new PrefixStore(jobPrefix(options.runId), options.store).wait([wishKey(2)]);
  await untilSeen();
  const vote = await member!.vote({ agreed: [1], isLeaving: true });
  expect(vote).toEqual({ changesView: true, isLeaving: true });
  await member!.close();
  expect(await joins).toBe('ERR_ELASTIC_OVER');
});
