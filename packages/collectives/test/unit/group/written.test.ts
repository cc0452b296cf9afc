// The owner of memory that a call writes is notified after the call is accepted and before anything is sent.
import { serialize } from 'node:v8';
import { describe, expect, it } from 'vitest';
import { solo } from '../../../src/backends/solo.ts';
import {
  asBuffer,
  type BufferCarrier,
  type BufferView,
  bufferSymbol,
  Group,
  loopbackGroups,
} from '../../../src/index.ts';

/** Memory whose owner counts its notifications. */
class Watched implements BufferCarrier {
  told = 0;
  readonly data: Float32Array;
  readOnly: BufferView['readOnly'];
  error: Error | undefined;

  constructor(count: number, value = 1) {
    this.data = new Float32Array(count).fill(value);
  }

  [bufferSymbol](): BufferView {
    const written = () => {
      this.told++;
      if (this.error) throw this.error;
    };
    return { ...asBuffer(this.data), readOnly: this.readOnly, written };
  }
}

const count = 4;
type Calls = Record<
  string,
  (group: Group, x: Watched, whole: Watched, result: Watched) => PromiseLike<unknown>
>;

/** Calls for two ranks with root 1. `x` has room for one part, `whole` and `result` for two. */
const calls: Calls = {
  allReduce: (g, x) => g.allReduce(x),
  reduce: (g, x) => g.reduce(x, { root: 1 }),
  broadcast: (g, x) => g.broadcast(x, { root: 1 }),
  allGather: (g, x, whole) => g.allGather(x, whole),
  gather: (g, x, whole) => g.gather(x, g.rank === 1 ? whole : null, { root: 1 }),
  scatter: (g, x, whole) => g.scatter(g.rank === 1 ? whole : null, x, { root: 1 }),
  reduceScatter: (g, x, whole) => g.reduceScatter(whole, x),
  allToAll: (g, _, whole, result) => g.allToAll(whole, result),
  message: (g, x) => (g.rank === 0 ? g.send(x, 1) : g.recv(x, 0)),
  batch: (g, x) => g.batch([g.rank === 0 ? { send: x, to: 1 } : { recv: x, from: 0 }]),
  'allReduce of a list': (g, x, whole) => g.allReduce([x, whole]),
  'broadcast of a list': (g, x, whole) => g.broadcast([x, whole], { root: 1 }),
  'reproducible sum': (g, x) => g.allReduce(x, { reproducible: true }),
  'reproducible sum at a root': (g, x) => g.reduce(x, { reproducible: true, root: 1 }),
  'reproducible parts': (g, x, whole) => g.reduceScatter(whole, x, { reproducible: true }),
  residual: (g, x, _, result) => g.allReduce(x, { wire: 'int8', residual: half(result) }),
};
/** The notifications of x, whole and result, on rank 0 and on rank 1. */
const expected: Record<keyof typeof calls, readonly [string, string]> = {
  allReduce: ['1 0 0', '1 0 0'],
  reduce: ['0 0 0', '1 0 0'],
  broadcast: ['1 0 0', '0 0 0'],
  allGather: ['0 1 0', '0 1 0'],
  gather: ['0 0 0', '0 1 0'],
  scatter: ['1 0 0', '1 0 0'],
  reduceScatter: ['1 0 0', '1 0 0'],
  allToAll: ['0 0 1', '0 0 1'],
  message: ['0 0 0', '1 0 0'],
  batch: ['0 0 0', '1 0 0'],
  'allReduce of a list': ['1 1 0', '1 1 0'],
  'broadcast of a list': ['1 1 0', '0 0 0'],
  'reproducible sum': ['1 0 0', '1 0 0'],
  'reproducible sum at a root': ['0 0 0', '1 0 0'],
  'reproducible parts': ['1 0 0', '1 0 0'],
  residual: ['1 0 1', '1 0 1'],
};

/** Returns the first elements of a buffer; their owner is that of the buffer. */
const half = (watched: Watched): BufferCarrier => ({
  [bufferSymbol]: () => ({ ...watched[bufferSymbol](), count, host: watched.data.subarray(0, count) }),
});

const newMemory = () => [new Watched(count), new Watched(2 * count), new Watched(2 * count)] as const;

describe('memory that a call writes', () => {
  it.each(Object.keys(calls))('has its owner notified once by %s, before anything is sent', async (name) => {
    const groups = loopbackGroups(2);
    const memory = groups.map(newMemory);
    const works = groups.map((group, rank) => calls[name]!(group, ...memory[rank]!));
    const told = () => memory.map((all) => all.map(({ told }) => told).join(' '));
    expect(told()).toEqual(expected[name]);
    await Promise.all(works);
    expect(told()).toEqual(expected[name]);
  });

  it.each(Object.keys(calls))('is refused by %s if it is read-only', async (name) => {
    const groups = loopbackGroups(2);
    for (const [rank, group] of groups.entries()) {
      const memory = newMemory();
      for (const [at, told] of expected[name]![rank]!.split(' ').entries()) {
        if (told === '0') continue;
        const watched = memory[at]!;
        watched.readOnly = { reason: 'it is a picture', next: 'Call copyOf() first.' };
        await expect(calls[name]!(group, ...memory)).rejects.toMatchObject({
          code: 'ERR_COLL_INVALID',
          message: expect.stringMatching(
            /must not write this buffer: it is a picture \(.*\)\. Call copyOf\(\) first\./,
          ),
        });
        watched.readOnly = undefined;
      }
      expect(memory.map(({ told }) => told)).toEqual([0, 0, 0]); // no owner is notified, because nothing is written
      expect(memory.map(({ data }) => data.every((value) => value === 1))).toEqual([true, true, true]);
    }
    // The refused call sent nothing and used no number.
    const memory = groups.map(newMemory);
    await Promise.all(groups.map((group, rank) => calls[name]!(group, ...memory[rank]!)));
    expect(groups.map(({ failure }) => failure)).toEqual([null, null]);
  });

  it('does not have its owner notified by refused calls', async () => {
    const [group] = loopbackGroups(2) as [Group];
    const [x, whole, result] = newMemory();
    const refused = [
      group.allReduce(x, { op: 'mean' as never }),
      group.allReduce(x, { timeoutMs: 0 }),
      group.broadcast(x, { root: 7 }),
      group.allGather(x, x),
      group.allReduce([x, new Int8Array(1)], { op: 'avg' }),
      group.allToAll(whole, result, { sendCounts: [1] }),
      group.recv(x, 0),
      group.batch([
        { recv: x, from: 1 },
        { recv: whole, from: 9 },
      ]),
      group.reduceScatter(whole, x, { reproducible: true, op: 'max' }),
    ];
    for (const work of refused)
      await expect(work).rejects.toMatchObject({ code: expect.stringMatching(/INVALID|UNSUPPORTED/) });
    expect([x, whole, result].map(({ told }) => told)).toEqual([0, 0, 0]);
    await Promise.allSettled([group.close()]);
    await expect(group.allReduce(x)).rejects.toMatchObject({ code: 'ERR_COLL_CLOSED' });
    expect(x.told).toBe(0);
  });

  it('is refused if its owner throws, with the reason, and nothing is sent', async () => {
    const groups = loopbackGroups(2);
    const [x] = newMemory();
    x.error = new Error('the tape needs it.');
    await expect(groups[0]!.allReduce(x)).rejects.toMatchObject({
      code: 'ERR_COLL_INVALID',
      message: expect.stringContaining('it must not write this buffer: the tape needs it (group'),
      cause: x.error,
    });
    const works = groups.map((group) => group.allReduce(new Float32Array(1)));
    await Promise.all(works);
    expect(works.map(({ seq }) => seq)).toEqual([0, 0]);
  });

  it('has its owner notified by the Sync form too, and in a group of one', () => {
    const group = new Group(solo(), { name: 'solo', timeoutMs: 1000 });
    const [x] = newMemory();
    group.allReduceSync(x, { op: 'avg' });
    expect(x.told).toBe(1);
    x.readOnly = { reason: 'it is a picture', next: 'Copy it.' };
    expect(() => group.allReduceSync(x)).toThrow('it is a picture');
    group.broadcastSync(x); // the root's memory is only read
    expect(x.told).toBe(1);
  });

  it('is plain data to a backend, which may serialize it', async () => {
    const backend = solo();
    const seen: unknown[] = [];
    const start: typeof backend.start = (operation, settle) => {
      seen.push(operation);
      return backend.start(operation, settle);
    };
    const listening = { ...backend, start };
    const group = new Group(listening, { name: 'solo', timeoutMs: 1000 });
    const [x, whole] = newMemory();
    await group.allReduce(x);
    await group.allReduce([x, whole]);
    for (const operation of seen) expect(serialize(operation).length).toBeGreaterThan(0);
    expect(seen).toHaveLength(2);
  });
});
