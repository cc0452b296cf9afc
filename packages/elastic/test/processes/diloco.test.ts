// Real processes that train apart: one is killed in a round, one joins, and bytes and losses are compared with DDP.
import { startRanks, values, withRanks } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import { type Compared, type Ended, move } from '../fixtures/diloco.ts';
import { flat, largestDifference, makeNet } from '../support/net.ts';

const programs = new URL('../fixtures/diloco.ts', import.meta.url);
/** Deadlines for a busy machine: ends of processes are noticed without them. */
const options = { settleMs: 10_000, stallMs: 60_000, joinTimeoutMs: 60_000, connectMs: 60_000 };

/** Returns the parameters after rounds of five steps of LocalSGD, each by the ranks that are in it. */
function localSgd(rounds: readonly (readonly number[])[], seed: number): Float32Array {
  const global = makeNet(seed);
  for (const ranks of rounds) {
    const start = flat(global);
    const ends = ranks.map((rank) => {
      const net = makeNet(seed);
      let i = 0;
      for (const parameter of net.parameters()) {
        const memory = parameter.dataSync() as Float32Array;
        for (let k = 0; k < memory.length; k++) memory[k] = start[i++]!;
      }
      for (let step = 0; step < 5; step++) move(net, rank);
      return flat(net);
    });
    const weight = ranks.reduce((sum, rank) => sum + rank + 1, 0);
    let i = 0;
    for (const parameter of global.parameters()) {
      const memory = parameter.dataSync() as Float32Array;
      for (let k = 0; k < memory.length; k++, i++)
        memory[k] = ranks.reduce((sum, rank, at) => sum + ends[at]![i]! * (rank + 1), 0) / weight;
    }
  }
  return flat(global);
}

describe('diloco', () => {
  it('goes on without a member that was killed in a round, whose steps of the round are lost', async () => {
    for (const fault of [
      { slot: 1, step: 8, do: 'kill before' },
      { slot: 1, step: 10, do: 'kill in' },
    ]) {
      const running = await startRanks(3, programs, 'member', { args: [{ ...options, size: 3 }, fault, 20] });
      const results = await running.results;
      expect(results.map(({ status }) => status)).toEqual(['ok', 'exited', 'ok']);
      const [first, , last] = results.map(({ value }) => value as Ended);
      // Killed in its average, the member may have given its part, and is lost for the next one.
      expect(first!.views).toHaveLength(1);
      expect(first!.views[0]!.size).toBe(2);
      const { step } = first!.views[0]!;
      expect(fault.do === 'kill in' ? [10, 15] : [10]).toContain(step);
      expect([first!.steps, first!.averages]).toEqual([20, 4]);
      expect(last).toEqual(first);
      const second = step === 10 ? [0, 2] : [0, 1, 2];
      const expected = localSgd([[0, 1, 2], second, [0, 2], [0, 2]], 1);
      expect(largestDifference(first!.net, expected)).toBeLessThan(1e-4);
    }
  });

  it('lets a member leave with the next average, to which it still gives its part', async () => {
    const args = [{ ...options, size: 3 }, { slot: 0, step: 7, do: 'leave' }, 20];
    const ends = values<Ended>(await withRanks(3, programs, 'member', { args }));
    const expected = [2, 4].map((rounds) =>
      localSgd(
        [
          [0, 1, 2],
          [0, 1, 2],
          [1, 2],
          [1, 2],
        ].slice(0, rounds),
        1,
      ),
    );
    expect(ends.map(({ steps, averages, views }) => [steps, averages, views])).toEqual([
      [10, 2, []],
      [20, 4, [{ size: 2, step: 10 }]],
      [20, 4, [{ size: 2, step: 10 }]],
    ]);
    expect(largestDifference(ends[0]!.net, expected[0]!)).toBeLessThan(1e-4);
    expect(ends[2]!.net).toEqual(ends[1]!.net);
    expect(largestDifference(ends[1]!.net, expected[1]!)).toBeLessThan(1e-4);
  });

  it('averages gradients on each host, also after a member of one was killed', async () => {
    const args = [
      { ...options, size: 4 },
      { slot: 3, step: 8 },
    ];
    const running = await startRanks(4, programs, 'hosts', { args });
    const results = await running.results;
    expect(results.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'exited']);
    const [a, b, c] = results.map(
      ({ value }) => value as { nets: Float32Array[]; sizes: number[]; recovered: number },
    );
    expect([a!.recovered, b!.recovered, c!.recovered]).toEqual([0, 0, 1]);
    expect(b!.nets).toEqual(a!.nets);
    // Groups and subgroups after each step: the third rank is alone on its host from step 8 on.
    const sizes = (first: number, second: number, steps: number) => Array(steps).fill([first, second]).flat();
    expect(a!.sizes).toEqual([...sizes(4, 2, 9), ...sizes(3, 2, 6)]);
    expect(c!.sizes).toEqual([...sizes(4, 2, 7), ...sizes(4, 0, 2), ...sizes(3, 1, 6)]);
    for (const [i, net] of c!.nets.entries()) {
      const isAverage = (i + 1) % 5 === 0;
      if (isAverage) expect(net).toEqual(a!.nets[i]);
      else expect(net).not.toEqual(a!.nets[i]);
    }
  });

  it('gives a process that joins the state of the others, with fragments on their way', async () => {
    const results = await withRanks(3, programs, 'joined', { args: [{ ...options, size: 2 }] });
    const ends = values<Ended>(results);
    expect(ends.map(({ views }) => views.map(({ size }) => size))).toEqual([[3], [3], []]);
    for (const end of ends) {
      expect(end.net).toEqual(ends[0]!.net);
      expect([end.steps, end.averages]).toEqual([ends[0]!.steps, ends[0]!.averages]);
    }
  });

  it('goes on in a group that was shrunk after a loss', async () => {
    const running = await startRanks(3, programs, 'shrinking', { args: [{ slot: 2, step: 10 }] });
    const results = await running.results;
    expect(results.map(({ status }) => status)).toEqual(['ok', 'ok', 'exited']);
    const [first, second] = results.map(({ value }) => value as Ended);
    expect(first!.views).toEqual([{ size: 2, step: 10 }]);
    expect(first!.averages).toBe(3);
    expect(second).toEqual(first);
  });

  it('reaches the loss of ddp with a tenth of the elements, also over narrow wires', async () => {
    const ranks = values<Record<'ddp' | 'full' | 'bfloat16' | 'int8', Compared>>(
      await withRanks(2, programs, 'compare'),
    );
    const [zero, one] = [ranks[0]!, ranks[1]!];
    const lossAtEnd = (kind: 'ddp' | 'full' | 'bfloat16' | 'int8') =>
      ranks.flatMap((rank) => rank[kind].losses.slice(-8)).reduce((sum, loss) => sum + loss, 0) / 16;
    const modelBytes = 4 * flat(makeNet()).length;
    expect(zero.ddp.bytes).toBeGreaterThanOrEqual(60 * modelBytes);
    const begin = zero.ddp.losses[0]!;
    expect(lossAtEnd('ddp')).toBeLessThan(0.8 * begin);
    for (const kind of ['full', 'bfloat16', 'int8'] as const) {
      expect(one[kind].net).toEqual(zero[kind].net);
      expect(lossAtEnd(kind)).toBeLessThan(0.8 * begin);
      expect(zero[kind].bytes).toBe(6 * (modelBytes + 24)); // six averages, each with a header
    }
    // The wires round: by an eighth of a per cent and by 1/127 of the largest difference of a block.
    expect(zero.bfloat16.net).not.toEqual(zero.full.net);
    expect(zero.int8.net).not.toEqual(zero.full.net);
    const moved = largestDifference(zero.full.net, flat(makeNet()));
    for (const kind of ['bfloat16', 'int8'] as const)
      expect(largestDifference(zero[kind].net, zero.full.net)).toBeLessThan(0.25 * moved);
  });
});

it('adds the rounding errors of int8 to a shorter round as they are, and not by the weight of the round before', async () => {
  for (const { full, int8 } of values<Record<'full' | 'int8', Float32Array>>(
    await withRanks(2, programs, 'shortRound'),
  )) {
    expect(int8).not.toEqual(full);
    expect(largestDifference(int8, full)).toBeLessThan(1e-2); // about 0.002; the weights of the rounds are 50 to 1
  }
});
