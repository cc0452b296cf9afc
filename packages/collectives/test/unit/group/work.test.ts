import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { solo } from '../../../src/backends/solo.ts';
import { Group, loopbackGroups } from '../../../src/index.ts';

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

  it('is waited for with a deadline that harms nothing', async () => {
    const groups = loopbackGroups(2, { name: 'world' }) as [Group, Group];
    const sum = Float32Array.of(1);
    const work = groups[0].allReduce(sum);
    expect([work.isCompleted, work.done]).toEqual([false, false]);
    await expect(work.wait({ timeoutMs: 5 })).rejects.toMatchObject({
      code: 'ERR_COLL_TIMEOUT',
      verb: 'allReduce',
      seq: 0,
      peers: [],
      message:
        'allReduce: it has not ended after 5 ms of wait() (group "world", rank 0 of 2, seq 0). ' +
        'It continues: await it again, or end all with group.abort().',
    });
    expect(groups[0].failure).toBeNull();
    const again = work.wait({ timeoutMs: 60_000 });
    await groups[1].allReduce(Float32Array.of(2));
    await again;
    expect([work.isCompleted, sum[0], groups[0].failure]).toEqual([true, 3, null]);
    await work.wait({ timeoutMs: 1 });
    groups[0].abort('enough');
  });

  it('gives its value to wait(), and its error, which comes before the deadline', async () => {
    const groups = loopbackGroups(2) as [Group, Group];
    const received = groups[0].recv(new Float32Array(1), 1);
    void groups[1].send(new Float32Array(1), 0);
    expect([await received.wait(), await received.wait({ timeoutMs: 60_000 })]).toEqual([1, 1]);
    const work = groups[0].barrier();
    const waiting = work.wait({ timeoutMs: 60_000 });
    groups[1].abort('enough');
    await expect(waiting).rejects.toMatchObject({ code: 'ERR_COLL_ABORTED' });
    await expect(work.wait({ timeout: 1 } as never)).rejects.toThrow(
      "wait: unknown option 'timeout'; expected 'timeoutMs'",
    );
    await expect(work.wait({ timeoutMs: '1' } as never)).rejects.toThrow('wait: timeoutMs is not usable');
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
    // Rank 1 gets its error too: a process that ends with a failure that was not awaited ends with code 1.
    await expect(groups[1].barrier()).rejects.toThrow('the group failed earlier, allReduce');
  });

  it('that fails unawaited is reported by close(), once, and not if the program has its error', async () => {
    const groups = loopbackGroups(2) as [Group, Group];
    void groups[0].allReduce(new Float32Array(1));
    const work = groups[1].allReduce(new Float32Array(2));
    await expect(work).rejects.toThrow('rank 0 called allReduce sum 1');
    await expect(groups[0].close()).rejects.toMatchObject({ code: 'ERR_COLL_MISMATCH', verb: 'allReduce' });
    await groups[1].close();
  });

  it('that fails unawaited is reported by close() after calls that were refused, too', async () => {
    const groups = loopbackGroups(2) as [Group, Group];
    await expect(groups[0].broadcast(x, { root: 3 })).rejects.toThrow('root is not a rank');
    expect(() => groups[1].allReduceSync(x)).toThrow(
      expect.objectContaining({ code: 'ERR_COLL_UNSUPPORTED' }),
    );
    void groups[0].allReduce(new Float32Array(1));
    void groups[1].allReduce(new Float32Array(2));
    for (const group of groups)
      await expect(group.close()).rejects.toMatchObject({ code: 'ERR_COLL_MISMATCH', verb: 'allReduce' });
  });

  it('that fails unawaited because a rank has left is no failure of close()', async () => {
    const groups = loopbackGroups(2) as [Group, Group];
    const work = groups[0].recv(x, 1);
    await groups[1].close();
    await groups[0].close();
    expect(work.done).toBe(true);
    expect(groups[0].failure?.code).toBe('ERR_COLL_PEER_LOST');
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
