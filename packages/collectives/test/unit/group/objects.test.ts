import { describe, expect, it } from 'vitest';
import { Group, loopback, loopbackGroups } from '../../../src/index.ts';

const pair = () => loopbackGroups(2) as [Group, Group];

describe('object forms', () => {
  it('refuse what cannot be cloned, before anything is sent', async () => {
    const groups = pair();
    await expect(groups[0].broadcastObject(() => {})).rejects.toMatchObject({
      code: 'ERR_COLL_INVALID',
      what: 'the value cannot be sent: () => {} could not be cloned',
    });
    await expect(groups[0].scatterObject([1])).rejects.toThrow(
      'the root has 1 values; expected one for each of 2',
    );
    await expect(groups[0].scatterObject('ab' as never)).rejects.toMatchObject({
      code: 'ERR_COLL_INVALID',
      what: expect.stringContaining('a list with one value for each rank'),
    });
    for (const peer of [2, 0.5, Symbol('peer'), Object.create(null)])
      await expect(groups[0].sendObject(1, peer as never)).rejects.toMatchObject({
        code: 'ERR_COLL_INVALID',
      });
    expect(await Promise.all(groups.map((group) => group.broadcastObject('fine')))).toEqual(['fine', 'fine']);
  });

  it('allocate nothing for an announced length above the limit', async () => {
    const [honest, other] = pair();
    const gathered = honest.allGatherObject('x');
    void other.allGather(Uint32Array.of(2 ** 31), new Uint32Array(2));
    await expect(gathered).rejects.toMatchObject({ code: 'ERR_COLL_INVALID', verb: 'allGatherObject' });
    await expect(gathered).rejects.toThrow(/expected at most 1073741824 bytes together, got 21474836\d\d/);
    await Promise.all([honest.barrier(), other.barrier()]);
  });

  it('say so when the bytes that arrive are no object', async () => {
    const [honest, other] = pair();
    const received = honest.broadcastObject(undefined, { root: 1 });
    void other.broadcast(Uint32Array.of(3), { root: 1 });
    void other.broadcast(Uint8Array.of(1, 2, 3), { root: 1 });
    await expect(received).rejects.toThrow('broadcastObject: this rank cannot read the object that arrived');
    expect(honest.failure).toBe(null);
  });

  it('fail under their own name', async () => {
    const groups = pair();
    const other = expect(groups[1].barrier()).rejects.toThrow('rank 1 called barrier');
    const error = await groups[0].gatherObject(1).catch((reason: Error) => reason);
    expect((error as Error).message).toMatch(
      /^gatherObject: rank 1 called barrier but rank 0 called allGather 1 × uint32 /,
    );
    expect(groups[0].failure).toBe(error);
    await expect(groups[0].barrier()).rejects.toThrow('the group failed earlier, gatherObject: rank 1');
    await other;
  });

  it('make calls that wait behind them fail with the same cause', async () => {
    const groups = pair();
    const waiting = groups.map((group) => {
      void group.allGatherObject(1, group.rank === 1 ? { timeoutMs: 20 } : {});
      return group;
    });
    await Promise.all(waiting.map((group) => group.barrier()));
    const late = groups[0].allGatherObject(1, { timeoutMs: 20 });
    const behind = groups[0].allReduce(new Float32Array(1));
    await expect(late).rejects.toThrow('allGatherObject: no answer from rank 1 within 20 ms');
    await expect(behind).rejects.toMatchObject({ code: 'ERR_COLL_TIMEOUT', peers: [1] });
  });

  it('that are pending end before close() does', async () => {
    const groups = pair();
    const works = groups.map((group) => group.allGatherObject(group.rank));
    const message = [groups[0].sendObject('late', 1), groups[1].recvObject(0)] as const;
    await Promise.all(groups.map((group) => group.close()));
    expect(works.map((work) => work.done)).toEqual([true, true]);
    expect(await works[1]).toEqual([0, 1]);
    expect(await message[1]).toEqual({ value: 'late', source: 0 });
  });

  it('arrive with memory of their own, as after structuredClone()', async () => {
    const groups = pair();
    const value = {
      a: Float32Array.of(1, 2, 3).subarray(1),
      b: new DataView(Uint8Array.of(7, 8, 9).buffer, 1),
      c: Buffer.from('text'),
      d: new Float64Array(0),
      e: BigInt64Array.of(5n),
    };
    const [all] = await Promise.all(groups.map((group) => group.allGatherObject(value)));
    const got = all?.[1];
    expect(got).toEqual(value);
    const bytesOf = ({ buffer, byteOffset }: ArrayBufferView) => [buffer.byteLength, byteOffset];
    expect(Object.values(got as typeof value).map(bytesOf)).toEqual([
      [8, 0],
      [2, 0],
      [4, 0],
      [0, 0],
      [8, 0],
    ]);
    await Promise.all(groups.map((group) => group.close()));
  });

  it('need the verbs that they are made of', async () => {
    const [backend] = loopback(1);
    const poor = { ...backend!, supports: { ...backend!.supports, verbs: ['allGather'] as const } };
    const group = new Group(poor, { name: 'poor', timeoutMs: 60_000 });
    await expect(group.gatherObject(1)).rejects.toThrow(
      'gatherObject: the loopback backend does not have it',
    );
    expect(await group.allGatherObject(1)).toEqual([1]);
  });
});
