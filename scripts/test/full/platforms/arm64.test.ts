// Runs the binaries for Linux arm64 in an emulator: doctor, the contract of the collectives, and training.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Pools, testData, values, withRanks } from '@ringwise/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../../../packages/collectives/contract/index.ts';
import { hostRanks } from '../../../../packages/collectives/test/support/pool.ts';
import { arm64Node, whyNoArm64 } from '../../../cross/emulator.mjs';
import type { History } from '../../support/mnist-ranks.ts';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const ringwise = join(root, 'packages/launch/bin/ringwise.js');
const hostModule = new URL('../../../../packages/collectives/test/support/host-ranks.ts', import.meta.url);
const mnist = new URL('../../support/mnist-ranks.ts', import.meta.url);
const skipped = whyNoArm64();

describe.skipIf(skipped !== null)(`Linux arm64${skipped === null ? '' : ` (skipped: ${skipped})`}`, () => {
  let folder = '';
  let node = '';
  beforeAll(async () => {
    const build = ['scripts/cross-build.mjs', 'linux-arm64', '--family', 'collectives', '--family', 'tensor'];
    const { status, stderr } = spawnSync(process.execPath, build, { cwd: root, encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    folder = mkdtempSync(join(tmpdir(), 'ringwise-arm64-'));
    node = arm64Node(folder);
    // The compiler of the test ranks' TypeScript runs on this processor only, and keeps what it has compiled.
    values(await withRanks(2, hostModule, 'endWithoutClose'));
  }, 3_600_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('passes doctor', () => {
    const { status, stdout, stderr } = spawnSync(node, [ringwise, 'doctor'], { cwd: root, encoding: 'utf8' });
    expect(stdout + stderr).toMatch(/ok +node +20\.20\.2 on linux-arm64, glibc/);
    expect([status, stdout + stderr]).toEqual([0, expect.not.stringMatching(/^wrong /m)]);
  });

  it('trains on two ranks to the losses of this processor', async () => {
    const options = { args: [testData('mnist'), 20], timeoutMs: 280_000 };
    const [here] = values<History>(await withRanks(2, mnist, 'trainMnist', options));
    const ranks = values<History>(await withRanks(2, mnist, 'trainMnist', { ...options, node }));
    for (const [rank, { arch, kernels, losses }] of ranks.entries()) {
      expect({ arch, kernels }).toEqual({ arch: 'arm64', kernels: 'native' });
      expect(losses.at(-1)).toBeLessThan(losses[0]!);
      if (rank === 0)
        for (const [step, loss] of losses.entries()) expect(loss).toBeCloseTo(here!.losses[step]!, 4);
    }
  });

  it('starts ranks by the launcher', () => {
    const program = join(root, 'scripts/test/fixtures/all-reduce.mjs');
    const { status, stdout, stderr } = spawnSync(node, [ringwise, 'run', '--nproc-per-node', '2', program], {
      cwd: root,
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([0, expect.anything()]);
    expect(stdout).toMatch(/sum of 2 ranks on arm64: 3/);
  });

  const pools = new Pools((size, port) => hostRanks(false, node)(size, port), 120_000);
  backendContract({ describe, it, expect }, 'host', { run: pools.run, sizes: [2] });
  afterAll(pools.end);
});
