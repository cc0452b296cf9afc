// Tests the host backend with tensors of a CUDA device. The software device runs copies as late as they may run, so
// that code that does not wait for them fails in every run. On a GPU, all ranks share the device.
import { backendContract } from '@ringwise/collectives/testing';
import {
  hasTestDevice,
  isTestGpu,
  type PoolStarter,
  Pools,
  startRanks,
  values,
  withRanks,
} from '@ringwise/testing';
import { afterAll, describe, expect, it } from 'vitest';

const module = new URL('../../support/device-ranks.ts', import.meta.url);
// Ranks take turns on a GPU, so few sizes are tested there.
const manySizes = isTestGpu ? [1, 2] : [1, 2, 3, 4];

const serving =
  (backend: string): PoolStarter =>
  async (size, port) => {
    const options = { args: [port, backend], timeoutMs: 600_000 };
    const started = await startRanks(size, module, 'serveOnDevice', options);
    return { ended: started.results.then(values) };
  };

const onHostOnly = {
  reason: 'reproducible sums are made in host memory, and a sentence says so',
  tests: ['sums floats reproducibly', 'sums floats reproducibly, Sync'],
};
const recordedLate = {
  reason: 'an operation that waits for its device is recorded only when the host backend receives it',
  tests: ['records what has not ended, and what failed'],
};

describe.skipIf(!hasTestDevice)('collectives on memory of a device', () => {
  for (const [name, backend, sizes, skip] of [
    ['host, on memory of a device', 'host', manySizes, [onHostOnly, recordedLate]],
    ['one rank, on memory of a device', 'auto', [1], [onHostOnly]],
  ] as const) {
    const pools = new Pools(serving(backend));
    backendContract({ describe, it, expect }, name, {
      sizes,
      skip,
      run: pools.run,
    });
    afterAll(pools.end);
  }

  it.each(manySizes.slice(0, 3))(
    'run after earlier work of the device and before later work, in pieces, at %i ranks',
    async (size) => {
      // The values of all ranks are summed and halved three times; then 1 is added.
      const sum = (size * (size + 1)) / 2;
      const expected = ((sum / 2) * (size / 2) * size) / 2 + 1;
      const ranks = values<number[]>(await withRanks(size, module, 'inOrder', { args: [1_500_001] }));
      for (const [min, max, small] of ranks)
        expect([min, max, small]).toEqual([expected, expected, (size * (size - 1)) / 2]);
    },
  );

  it('the record has an entry for each operation, by its number in the group', async () => {
    const count = 1_500_001; // several pieces
    const bytes = 4 * count;
    const told = [
      ['allReduce', 0, count, bytes, 'done'],
      ['allReduce', 1, 1, 4, 'done'],
      ['allGather', 2, count, bytes, 'done'],
      ['broadcast', 3, 5, 20, 'done'],
      ['barrier', 4, 0, 0, 'done'],
    ];
    for (const one of values(await withRanks(2, module, 'recorded', { args: [count] })))
      expect(one).toEqual({
        numbers: [0, 1, 2, 3, 4, 5],
        told,
        toldWhenClosed: told,
        seqs: [0, 1, 2, 3],
        isInOrder: true,
      });
  });

  it('one rank needs no backend of its own for them', async () => {
    expect(values(await withRanks(1, module, 'oneRank'))).toEqual([['solo', false, 3, 3, 4, 4]]);
  });

  it('messages go between devices and hosts', async () => {
    expect(values(await withRanks(2, module, 'messages', { args: [1_200_000] }))).toEqual([
      [6, 6],
      [5, 5],
    ]);
  });

  // A piece of an allReduce of float32 has this many elements.
  const step = Math.floor((2 ** 21 - 256) / 8);

  it.each([
    ['in their last piece', [[2 * step + 100], [2 * step + 101]]],
    ['by a whole piece', [[2 * step], [3 * step]]],
    ['where the pieces of one are the calls of the other', [[2 * step, 100], [2 * step + 100]]],
    ['where one has a single piece', [[step, 100], [step + 100]]],
  ])('lengths that differ %s are told before memory is touched', async (_, lengths) => {
    const ranks = await withRanks(2, module, 'reducedInTurn', { args: [lengths] });
    for (const [rank, told] of values(ranks).entries()) {
      const own = lengths[rank]![0]!;
      expect(told).toEqual({
        code: 'ERR_COLL_MISMATCH',
        message: expect.stringContaining(
          own > step ? `This rank called allReduce sum ${own} × float32` : 'rank 0 called allReduce',
        ),
        values: lengths[rank]!.map(() => [1, 1]),
      });
    }
  });

  /** What both ranks report if the device of rank 1 is the cause. */
  const failedOnOne = (text: RegExp) =>
    [true, false].map((secondary) => ({
      code: 'ERR_COLL_SYSTEM',
      what: expect.stringMatching(text),
      peers: [1],
      secondary,
    }));

  it.each(['allReduce', 'message'])('a rank without the device tells all ranks (%s)', async (verb) => {
    expect(values(await withRanks(2, module, 'noDevice', { args: [verb] }))).toEqual(
      failedOnOne(/^the CUDA device of rank 1 reported .*there is no such device; .*nowhere/),
    );
  });

  it.skipIf(isTestGpu)(
    'the failure of a device is told to all ranks, and none gets data that were not copied to the host',
    async () => {
      expect(values(await withRanks(2, module, 'failing'))).toEqual(
        failedOnOne(/^the CUDA device of rank 1 reported .*CUDA_ERROR_ILLEGAL_ADDRESS/),
      );
    },
  );

  it('the error about a lost rank has the number of the operation', async () => {
    const [first] = await withRanks(2, module, 'lost');
    expect(first!.value).toEqual([
      'ERR_COLL_PEER_LOST',
      'allReduce',
      0,
      [1],
      expect.stringMatching(/^ERR_COLL_/),
      true,
    ]);
  });
});
