// The buffers of one call that its operations write beside each other may not share memory: the result would
// depend on their lengths and on which operation ends first.
import { describe, expect, it } from 'vitest';
import { solo } from '../../../src/backends/solo.ts';
import {
  type BufferLike,
  bufferSymbol,
  type CollectiveError,
  Group,
  loopbackGroups,
} from '../../../src/index.ts';

const whole = new Float32Array(80_000);
const x = whole.subarray(0, 2);
const y = whole.subarray(4, 6);
const pair = whole.subarray(8, 12);
const large = whole.subarray(20, 40_020);

const failureOf = async (call: () => PromiseLike<unknown>): Promise<CollectiveError> => {
  try {
    await call();
  } catch (error) {
    return error as CollectiveError;
  }
  throw new Error('the call did not fail');
};

describe('buffers of one call that share memory', () => {
  const refused: [names: string, call: (group: Group) => PromiseLike<unknown>][] = [
    ['buffer 0 and buffer 2', (g) => g.allReduce([x, y, x])],
    ['buffer 0 and buffer 1', (g) => g.allReduce([large, large])],
    ['buffer 1 and buffer 0', (g) => g.allReduce([large, whole.subarray(19, 21)])],
    ['buffer 0 and buffer 1', (g) => g.broadcast([x, x])],
    ['buffer 0 and buffer 1', (g) => g.reduce([x, x], { root: 1 })],
    ['output 0 and output 1', (g) => g.allGather(x, [y, y])],
    ['output 0 and output 1', (g) => g.allGather([x, y], [pair, pair])],
    ['input 0 and output 1', (g) => g.allGather([x, y], [pair, whole.subarray(0, 4)])],
    ['output 0 and output 1', (g) => g.reduceScatter([pair, whole.subarray(12, 16)], [x, x])],
    ['output 0 and output 1', (g) => g.allToAll([x, y], [pair.subarray(0, 2), pair.subarray(0, 2)])],
    [
      'recv 0 and recv 1',
      (g) =>
        g.batch([
          { recv: x, from: 1 },
          { recv: x, from: 1 },
        ]),
    ],
    [
      'send 0 and recv 0',
      (g) =>
        g.batch([
          { send: x, to: 1 },
          { recv: x, from: 1 },
        ]),
    ],
  ];

  it.each(refused)('are refused: %s (case %#)', async (names, call) => {
    const [group] = loopbackGroups(2) as [Group];
    const error = await failureOf(() => call(group));
    expect([error.code, error.message.includes(`${names} share memory`)]).toEqual(['ERR_COLL_INVALID', true]);
    expect(group.failure).toBeNull();
  });

  it('are refused on a device, too', async () => {
    const onCuda = (count: number, address: number): BufferLike => ({
      [bufferSymbol]: () => ({
        ...{ dtype: 'float32', count, device: { kind: 'cuda', index: 0 }, host: null },
        handle: { address: BigInt(0x10000 + address), owner: {} },
      }),
    });
    const group = new Group(solo(), { name: 'solo', timeoutMs: 40_000 });
    const error = await failureOf(() => group.allReduce([onCuda(8, 0), onCuda(8, 28)]));
    expect(error.message).toContain('buffer 0 and buffer 1 share memory');
    await group.allReduce([onCuda(8, 0), onCuda(8, 32)]);
  });

  it('are accepted where nothing is written twice', async () => {
    const groups = loopbackGroups(2);
    const values = await Promise.all(
      groups.map(async (group) => {
        const input = Float32Array.of(group.rank, 10);
        const [first, second] = [new Float32Array(1), new Float32Array(1)];
        await group.reduceScatter([input, input], [first, second]); // inputs are only read
        const neighbours = new Float32Array(2).fill(1);
        await group.allReduce([neighbours.subarray(0, 1), neighbours.subarray(1), neighbours.subarray(2)]);
        return [first[0], second[0], ...neighbours];
      }),
    );
    expect(values).toEqual([
      [1, 1, 2, 2],
      [20, 20, 2, 2],
    ]);
  });
});
