import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { solo } from '../src/backends/solo.ts';
import { Group, loopbackGroups } from '../src/index.ts';

const unhandled: unknown[] = [];
const collect = (reason: unknown) => unhandled.push(reason);
beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', collect);
});
afterEach(() => {
  process.off('unhandledRejection', collect);
});

const x = new Float32Array(4);

describe('a Work', () => {
  it('is awaited like a promise, before or after it has ended', async () => {
    const groups = loopbackGroups(2) as [Group, Group];
    const [first, second] = groups.map((group) => group.allReduce(new Float32Array(1)));
    expect(first?.done).toBe(false);
    const nothing = await first;
    expect([nothing, first?.done, second?.done]).toEqual([undefined, true, true]);
    await second;
    await second;
    expect(await Promise.all([first, second])).toEqual([undefined, undefined]);
  });

  it('has then, catch and finally', async () => {
    const group = new Group(solo(), { name: 'solo', timeoutMs: 1_000 });
    expect(await group.barrier().then(() => 7)).toBe(7);
    expect(await group.broadcast(x, { root: 3 }).catch((error) => error.code)).toBe('ERR_COLL_INVALID');
    expect(await group.barrier().catch(() => 'not called')).toBe(undefined);
    let ends = 0;
    await group.barrier().finally(() => ends++);
    await expect(group.broadcast(x, { root: 3 }).finally(() => ends++)).rejects.toThrow('root is not a rank');
    expect(ends).toBe(2);
  });

  it('that fails unawaited is no unhandled rejection, and its error is kept', async () => {
    const groups = loopbackGroups(2) as [Group, Group];
    void groups[0].allReduce(new Float32Array(1));
    const refused = groups[0].broadcast(x, { root: 3 });
    void groups[1].allReduce(new Float32Array(2));
    const work = groups[0].barrier();
    await new Promise((resolve) => setImmediate(resolve));
    expect(groups[0].failure?.code).toBe('ERR_COLL_MISMATCH');
    expect(unhandled).toEqual([]);
    await expect(work).rejects.toBe(groups[0].failure);
    await expect(refused).rejects.toThrow('root is not a rank');
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  });

  it('that is awaited without a handler is unhandled, like any promise', async () => {
    const group = new Group(solo(), { name: 'solo', timeoutMs: 1_000 });
    void group.broadcast(x, { root: 3 }).then(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toHaveLength(1);
  });

  it('can be fenced where the backend may block, and says so where not', async () => {
    const group = new Group(solo(), { name: 'solo', timeoutMs: 1_000 });
    const work = group.allReduce(x);
    work.fence();
    work.fence();
    expect(work.done).toBe(true);
    await work;
    const [a, b] = loopbackGroups(2) as [Group, Group];
    const pending = a.barrier();
    expect(() => pending.fence()).toThrow('fence: the loopback backend may not block this thread');
    await Promise.all([pending, b.barrier()]);
    pending.fence();
  });
});
