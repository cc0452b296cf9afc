// Tests snapshots of a training on devices, and clipping by the norm of gradients that are spread over devices.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasTestDevice, testDeviceOf, values, withRanks } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const module = new URL('../../support/device-snapshot-ranks.ts', import.meta.url);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ringwise-device-'));
});
afterEach(() => rm(folder, { recursive: true }));

interface Trained {
  readonly bits: readonly Float32Array[];
  readonly places: readonly string[];
}

describe.skipIf(!hasTestDevice)('on a device', () => {
  const run = async <T>(name: string, ...args: unknown[]) =>
    values<T>(await withRanks(2, module, name, { args: ['host', ...args] }));

  it('a training goes on from its snapshot as if it had never stopped', async () => {
    const [half, end] = ['half', 'end'].map((name) => join(folder, name));
    await run('train', 3, half, null);
    const whole = await run<Trained>('train', 6, end, null);
    const parts = await run<Trained>('train', 6, end, half);
    for (const [rank, { bits, places }] of parts.entries()) {
      expect(bits).toEqual(whole[rank]!.bits);
      expect(bits).toEqual(parts[0]!.bits);
      expect(places).toEqual([`cuda:${testDeviceOf(rank)}`]);
    }
  });

  it('gradients of all ranks are clipped by the norm of all together', async () => {
    const norm = Math.hypot(3, 1, 4, 1, 2);
    for (const maxNorm of [1, 10]) {
      const ranks = await run<{ norm: number; shard: number[][] }>('clip', maxNorm);
      for (const [rank, clipped] of ranks.entries()) {
        expect(clipped.norm).toBeCloseTo(norm, 5);
        const before = [3 + rank, 0, 1, 2 * rank];
        const factor = maxNorm < norm ? maxNorm / norm : 1;
        for (const [i, value] of clipped.shard.flat().entries())
          expect(value).toBeCloseTo(before[i]! * factor, 5);
      }
    }
  });
});
