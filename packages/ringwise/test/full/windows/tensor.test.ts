// Native kernels of tensors in Node.js for Windows under Wine: their contract, and training on two ranks.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { testData } from '@ringwise/testing';
import { build } from 'esbuild';
import { beforeAll, describe, expect, it } from 'vitest';
import { hasWine, useWindows } from '../../support/wine.ts';

const root = fileURLToPath(new URL('../../../../..', import.meta.url));
const suite = join(root, 'packages/tensor/test/fixtures/windows');
const ringwise = ['node_modules/@ringwise/launch/bin/ringwise.js', 'run', '--nproc-per-node', '2'];

describe.skipIf(!hasWine)('native kernels for Windows, under Wine', { timeout: 1_200_000 }, () => {
  const names = ['collectives', 'data', 'ddp', 'elastic', 'formats', 'launch', 'store', 'tensor'];
  const windows = useWindows(names);
  const addonOf = (platform: string) => {
    const to = join(windows.folder, 'node_modules/@ringwise', `tensor-${platform}`);
    mkdirSync(to, { recursive: true });
    for (const file of ['package.json', 'tensor.node'])
      copyFileSync(join(root, 'native/npm', `tensor-${platform}`, file), join(to, file));
    return to;
  };

  beforeAll(async () => {
    const options = { cwd: root, encoding: 'utf8' } as const;
    const { status, stderr } = spawnSync(process.execPath, ['scripts/cross-build.mjs', 'win32-x64'], options);
    if (status !== 0) throw new Error(stderr);
    addonOf('win32-x64');
    addonOf(`${process.platform}-${process.arch}`);
    const vitest = createRequire(createRequire(import.meta.url).resolve('vitest/package.json'));
    await build({
      entryPoints: [join(suite, 'main.mjs')],
      outfile: join(windows.folder, 'kernels.mjs'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      alias: { vitest: join(suite, 'suite.mjs'), '@vitest/expect': vitest.resolve('@vitest/expect') },
      logLevel: 'error',
    });
  }, 3_600_000);

  it.each(['baseline', 'avx2', 'avx512'])('pass their contract on %s', async (level) => {
    // A level that this processor lacks is replaced by the best one that it has.
    expect(await windows.finished(['kernels.mjs', 'kernels.json'], { RINGWISE_CPU: level })).toBe(0);
    const { platform, path, count, failed } = JSON.parse(windows.read('kernels.json'));
    expect([platform, path]).toEqual(['win32', expect.stringContaining('tensor-win32-x64')]);
    expect(failed).toEqual([]);
    expect(count).toBeGreaterThan(300);
  });

  it('train on two ranks over tcp, to the losses of this system', async () => {
    const command = [...ringwise, 'mnist.mjs'];
    const data = testData('mnist');
    const args = (result: string) => [...command, result, ...(data === null ? [] : [data])];
    expect([await windows.finished(args('windows.json')), windows.read('output.txt')]).toEqual([
      0,
      expect.any(String),
    ]);
    const trained = JSON.parse(windows.read('windows.json'));
    expect(trained).toMatchObject({ platform: 'win32', kernels: 'native', backend: 'tcp' });
    const options = { cwd: windows.folder, encoding: 'utf8' } as const;
    expect(spawnSync(process.execPath, args('here.json'), options)).toMatchObject({ status: 0 });
    const { losses } = JSON.parse(windows.read('here.json')) as { losses: number[] };
    expect(trained.losses.at(-1)).toBeLessThan(trained.losses[0]);
    for (const [step, loss] of losses.entries()) expect(trained.losses[step]).toBeCloseTo(loss, 4);
  });

  it('are replaced by those in TypeScript, with one warning, where the addon does not load', async () => {
    rmSync(join(windows.folder, 'node_modules/@ringwise/tensor-win32-x64/tensor.node'));
    copyFileSync(
      join(root, 'native/npm', `tensor-${process.platform}-${process.arch}`, 'tensor.node'),
      join(windows.folder, 'node_modules/@ringwise/tensor-win32-x64/tensor.node'),
    );
    expect(await windows.finished(['fallback.mjs', 'fallback.txt'])).toBe(0);
    expect(windows.read('fallback.txt')).toBe('reference 3');
    expect(windows.read('output.txt').match(/Warning/g)).toHaveLength(1);
  });
});
