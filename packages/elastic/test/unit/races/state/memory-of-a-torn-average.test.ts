// Race 10: an average is under way when its view ends, and its memory is used for something else at once. No byte of
// the average arrives after its call has ended, and none of the old view comes into the new one.
import { MemoryStore } from '@ringwise/store';
import { expect, test } from 'vitest';
import { foundJob } from '../../../support/in-process.ts';

const count = 1 << 20;

for (const backend of ['host', 'tcp'])
  test(`over ${backend}`, async () => {
    const members = await foundJob(3, { store: new MemoryStore(), runId: backend, backend });
    const memory = members.map((_, rank) => new Float32Array(count).fill(100 * (rank + 1)));
    // Several buckets, of which the last member gives only some.
    const parts = memory.map((all) =>
      Array.from({ length: 8 }, (_, k) => all.subarray(k * (count / 8), (k + 1) * (count / 8))),
    );
    const [, , lost] = members;
    const works = members
      .slice(0, 2)
      .map(({ group }, rank) => parts[rank]!.map((part) => group.allReduce(part)));
    const given = parts[2]!.slice(0, 3).map((part) => lost!.group.allReduce(part));
    const ends = Promise.all(works.map((each) => Promise.allSettled(each)));
    given[2]!.then(
      () => lost!.group.abort('lost'),
      () => {},
    );
    const settled = await ends;
    for (const [rank, each] of settled.entries()) {
      expect(each[0]!.status).toBe('fulfilled');
      expect(each[7]!.status).toBe('rejected');
      memory[rank]!.fill(7);
    }
    await Promise.allSettled(given);
    await lost!.close();
    const rest = members.slice(0, 2);
    await Promise.all(
      rest.map((member) =>
        member.change({ finalSteps: 0, isComplete: false, hasState: true }, member.group.failure),
      ),
    );
    const next = rest.map(() => new Float32Array(count).fill(3));
    await Promise.all(rest.map(({ group }, rank) => group.allReduce(next[rank]!)));
    for (const all of next) expect(all.every((value) => value === 6)).toBe(true);
    for (const all of memory.slice(0, 2)) expect(all.every((value) => value === 7)).toBe(true);
    await Promise.all(rest.map((member) => member.close()));
  });
