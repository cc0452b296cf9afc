// Long transfers over TCP, some of which must wait for others. All ranks are in this process.
import { constants } from 'node:buffer';
import { expect, it } from 'vitest';
import { randomFloats } from '../../../../contract/inputs.ts';
import { tcpBackend } from '../../../../src/backends/tcp/tcp.ts';
import type { Group } from '../../../../src/group/group.ts';
import { loopbackGroups } from '../../../../src/index.ts';
import { tcpContext, tcpGroups } from '../../../support/tcp-groups.ts';

const onAll = <T>(groups: readonly Group[], call: (group: Group) => PromiseLike<T>) =>
  Promise.all(groups.map(call));

it('long messages and collectives run beside each other, also if they are taken late', async () => {
  const groups = await tcpGroups(3);
  const count = 600_000;
  const inputs = groups.map(({ rank }) => new Float32Array(count).fill(rank + 1));
  const sums = groups.map(({ rank }) => new Float32Array(3 * count).fill(rank + 1));
  const roots = groups.map(({ rank }) => new Int32Array(count).fill(rank));
  const outputs = groups.map(() => new Float32Array(count));
  const works: PromiseLike<unknown>[] = [];
  for (const group of groups) {
    const { rank } = group;
    works.push(group.send(inputs[rank]!, (rank + 1) % 3));
    works.push(group.allReduce(sums[rank]!));
    works.push(group.broadcast(roots[rank]!, { root: 2 }));
    await new Promise((resolve) => setImmediate(resolve)); // the ranks come one after the other
  }
  for (const group of groups) works.push(group.recv(outputs[group.rank]!, (group.rank + 2) % 3));
  await Promise.all(works);
  for (const { rank } of groups) {
    expect(outputs[rank]!.every((x) => x === ((rank + 2) % 3) + 1)).toBe(true);
    expect(sums[rank]!.every((x) => x === 6)).toBe(true);
    expect(roots[rank]!.every((x) => x === 2)).toBe(true);
  }
  await onAll(groups, (group) => group.close());
});

it.each(['float32', 'bfloat16'] as const)(
  'sums of %s have the bits of loopback, in one step or two',
  async (dtype) => {
    const [tcp, reference] = [await tcpGroups(4), loopbackGroups(4)];
    const run = async (groups: readonly Group[], count: number) => {
      const buffers = groups.map(({ rank }) => {
        const next = randomFloats(rank + count);
        if (dtype === 'float32') return Float32Array.from({ length: count }, next);
        return { data: Uint16Array.from({ length: count }, () => (next() + 1) * 0x2000), dtype };
      });
      await Promise.all(groups.map((group, rank) => group.allReduce(buffers[rank]!)));
      return buffers.map((buffer) => Buffer.from('data' in buffer ? buffer.data.buffer : buffer.buffer));
    };
    for (const count of [1, 1000, 100_003]) {
      const [found, expected] = [await run(tcp, count), await run(reference, count)];
      for (const [rank, bytes] of found.entries())
        expect([count, rank, bytes.equals(expected[rank]!)]).toEqual([count, rank, true]);
    }
    await onAll([...tcp, ...reference], (group) => group.close());
  },
);

it.each([8, 100_000])(
  'names a rank that transfers a buffer of %i elements before the call has ended',
  async (count) => {
    for (const guilty of [[1], [0, 1]]) {
      const groups = await tcpGroups(2);
      const works = groups.map((group) => group.broadcast(new Float64Array(count), { root: 0 }));
      const buffers = groups.map(() => new Float64Array(count));
      const later = groups.map((group) => group.allReduce(buffers[group.rank]!));
      for (const rank of guilty)
        structuredClone(buffers[rank]!.buffer, { transfer: [buffers[rank]!.buffer] });
      await Promise.allSettled(works);
      const outcomes = await Promise.allSettled(later);
      for (const rank of guilty) {
        const { reason } = outcomes[rank] as PromiseRejectedResult;
        expect(reason).toMatchObject({ code: 'ERR_COLL_SYSTEM' });
        expect(reason.message).toMatch(/rank [01] has detached a buffer of the call before its turn came/);
      }
      await onAll(groups, (group) => group.close().catch(() => {}));
    }
  },
);

it('refuses a buffer that no Uint8Array can cover', async () => {
  const backend = await tcpBackend(tcpContext(0, 1));
  const host = { byteLength: constants.MAX_LENGTH + 8 } as Float64Array;
  const view = { dtype: 'float64', count: host.byteLength / 8, host, handle: null } as const;
  const buffer = { ...view, device: { kind: 'cpu', index: 0 } } as const;
  const send = { verb: 'send', seq: 0, timeoutMs: 1000, label: null, buffer, peer: 1, tag: 0 } as const;
  expect(backend.refuses?.(send)).toMatchObject({ code: 'ERR_COLL_UNSUPPORTED' });
  const small = { ...buffer, host: new Float64Array(1), count: 1 };
  expect(backend.refuses?.({ ...send, buffer: small })).toBeNull();
  await backend.close();
});

it('Sync verbs cannot block, and say so only while the group is open', async () => {
  const [group] = await tcpGroups(1);
  expect(() => group!.barrierSync()).toThrow(expect.objectContaining({ code: 'ERR_COLL_UNSUPPORTED' }));
  await group!.close();
  expect(() => group!.barrierSync()).toThrow(expect.objectContaining({ code: 'ERR_COLL_CLOSED' }));
});

it('memory that threads share can be sent and received', async () => {
  const groups = await tcpGroups(2);
  const buffers = groups.map(({ rank }) => new Float32Array(new SharedArrayBuffer(400_000)).fill(rank + 1));
  await Promise.all(groups.map((group, rank) => group.allReduce(buffers[rank]!)));
  for (const buffer of buffers) expect(buffer.every((x) => x === 3)).toBe(true);
  await onAll(groups, (group) => group.close());
});

it('Sync verbs say what to call instead', async () => {
  const groups = await tcpGroups(2);
  expect(() => groups[0]!.allReduceSync(new Float32Array(1))).toThrow(
    'allReduce: the tcp backend may not block this thread (group "tcp", rank 0 of 2). Await the asynchronous form.',
  );
  await onAll(groups, (group) => group.close());
});
