// What the native binaries of a platform must do in Node for that platform: doctor, training, the launcher, and the
// contract of the collectives on two ranks.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pools, testData, values, withRanks } from '@ringwise/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../../packages/collectives/contract/index.ts';
import { hostRanks } from '../../../packages/collectives/test/support/pool.ts';
import { root } from './clean-room.ts';
import type { History } from './mnist-ranks.ts';

const ringwise = join(root, 'packages/launch/bin/ringwise.js');
const hostModule = new URL('../../../packages/collectives/test/support/host-ranks.ts', import.meta.url);
const mnist = new URL('./mnist-ranks.ts', import.meta.url);

export interface Platform {
  /** As people call it. */
  readonly name: string;
  /** A target of cross-build.mjs. */
  readonly target: string;
  readonly arch: string;
  /** What doctor says of Node. */
  readonly doctor: RegExp;
  /** Why this machine cannot run the platform's programs; null if it can. */
  readonly skipped: string | null;
  /** Writes a program into a folder that stands for the platform's node, and returns its path. */
  readonly nodeIn: (folder: string) => string;
}

/** Builds the addons of a platform and tests them. */
export function testPlatform({ name, target, arch, doctor, skipped, nodeIn }: Platform): void {
  describe.skipIf(skipped !== null)(`${name}${skipped === null ? '' : ` (skipped: ${skipped})`}`, () => {
    let folder = '';
    let node = '';
    beforeAll(async () => {
      const build = ['scripts/cross-build.mjs', target, '--family', 'collectives', '--family', 'tensor'];
      const { status, stderr } = spawnSync(process.execPath, build, { cwd: root, encoding: 'utf8' });
      if (status !== 0) throw new Error(stderr);
      folder = mkdtempSync(join(tmpdir(), `ringwise-${target}-`));
      node = nodeIn(folder);
      // The compiler of the test ranks' TypeScript may run on this processor only, and keeps what it has compiled.
      values(await withRanks(2, hostModule, 'endWithoutClose'));
    }, 3_600_000);
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    const run = (...args: string[]) =>
      spawnSync(node, [ringwise, ...args], { cwd: root, encoding: 'utf8', timeout: 280_000 });

    it('passes doctor, which names the addons of the platform', () => {
      const { status, stdout, stderr } = run('doctor');
      expect(stdout + stderr).toMatch(doctor);
      expect([status, stdout + stderr]).toEqual([0, expect.not.stringMatching(/^wrong /m)]);
      for (const addon of [`collectives-${target}/coll.node`, `tensor-${target}/tensor.node`])
        expect(stdout).toContain(addon);
    });

    it("trains on two ranks to the losses of this machine's addons", async () => {
      const options = { args: [testData('mnist'), 20], timeoutMs: 280_000 };
      const [here] = values<History>(await withRanks(2, mnist, 'trainMnist', options));
      const ranks = values<History>(await withRanks(2, mnist, 'trainMnist', { ...options, node }));
      for (const [rank, history] of ranks.entries()) {
        expect(history).toMatchObject({ arch, kernels: 'native', backend: 'host' });
        expect(history.losses.at(-1)).toBeLessThan(history.losses[0]!);
        if (rank === 0)
          for (const [step, loss] of history.losses.entries())
            expect(loss).toBeCloseTo(here!.losses[step]!, 4);
      }
    });

    it('starts ranks by the launcher', () => {
      const program = join(root, 'scripts/test/fixtures/all-reduce.mjs');
      const { status, stdout, stderr } = run('run', '--nproc-per-node', '2', program);
      expect([status, stderr]).toEqual([0, expect.anything()]);
      expect(stdout).toContain(`sum of 2 ranks on ${arch}: 3`);
    });

    const pools = new Pools((size, port) => hostRanks(false, node)(size, port), 120_000);
    backendContract({ describe, it, expect }, 'host', { run: pools.run, sizes: [2] });
    afterAll(pools.end);
  });
}
