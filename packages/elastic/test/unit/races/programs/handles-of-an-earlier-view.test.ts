// Race 21: a program keeps a group or a subgroup of a view that is over. Every call says so, and what to use instead.
import { MemoryStore } from '@ringwise/store';
import { expect, test } from 'vitest';
import { foundJob, step } from '../../../support/in-process.ts';

const instead = /read job\.group or membership\.group again/;

test('groups of an earlier view and their subgroups refuse all calls', async () => {
  const store = new MemoryStore();
  const members = await foundJob(3, { store, runId: 'handles' });
  const old = members.map(({ group }) => group);
  const subgroups = await Promise.all(old.map((group) => group.split(group.rank >> 1)));
  members[2]!.leave();
  expect(await step(members, 0)).toBe(true);
  const rest = members.slice(0, 2);
  for (const { view, group } of rest) expect([view.number, group.size, group.name]).toEqual([1, 2, 'view 1']);
  const x = Float64Array.of(1);
  for (const group of [...old, ...subgroups.map((each) => each!)]) {
    const calls: Record<string, () => PromiseLike<unknown>> = {
      allReduce: () => group.allReduce(x),
      broadcast: () => group.broadcast(x, { root: 0 }),
      barrier: () => group.barrier(),
      split: () => group.split(0),
      subgroup: () => group.subgroup([0]),
      shrink: () => group.shrink(),
    };
    for (const [verb, call] of Object.entries(calls)) {
      const error = await Promise.resolve()
        .then(call)
        .then(
          () => null,
          (failure: unknown) => failure,
        );
      expect([group.name, verb, error]).toMatchObject([
        group.name,
        verb,
        { code: 'ERR_COLL_CLOSED', message: expect.stringMatching(instead) },
      ]);
    }
  }
  expect(x[0]).toBe(1);
  // Subgroups of the new view work, and have nothing of the old ones.
  const next = await Promise.all(rest.map(({ group }) => group.split(0)));
  await Promise.all(next.map((group) => group!.allReduce(Float64Array.of(1))));
  expect(next.map((group) => group!.size)).toEqual([2, 2]);
  await Promise.all(rest.map((member) => member.close()));
});

test('shrink() is refused: the members agree on their next group themselves', async () => {
  const members = await foundJob(2, { store: new MemoryStore(), runId: 'shrink' });
  for (const { group } of members)
    await expect(group.shrink()).rejects.toMatchObject({
      code: 'ERR_COLL_UNSUPPORTED',
      message: expect.stringMatching(instead),
    });
  expect(await step(members, 0)).toBe(false);
  await Promise.all(members.map((member) => member.close()));
});
