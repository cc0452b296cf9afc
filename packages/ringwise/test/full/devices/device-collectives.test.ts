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
  reason: 'what waits for its device is recorded when the host backend gets it',
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
    'come after the work before them and before the work after them, in pieces, at %i ranks',
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

  it('a rank without the device tells all ranks', async () => {
    const told = values<string>(await withRanks(2, module, 'noDevice'));
    for (const message of told) expect(message).toMatch(/^allReduce: .*there is no such device; .*nowhere/);
  });

  it.skipIf(isTestGpu)(
    'a device that fails tells all ranks, and none gets what has not come down',
    async () => {
      const told = values<string>(await withRanks(2, module, 'failing'));
      for (const message of told) expect(message).toMatch(/^allReduce: .*CUDA_ERROR_ILLEGAL_ADDRESS/);
    },
  );

  it('a lost rank is told of the operation, by its number', async () => {
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
