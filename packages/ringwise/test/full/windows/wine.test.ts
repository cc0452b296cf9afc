// Node.js for Windows under Wine: the tcp backend and the launcher.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hasWine, useWindows } from '../../support/wine.ts';

const ringwise = ['node_modules/@ringwise/launch/bin/ringwise.js', 'run', '--nproc-per-node', '2'];
/** Returns how many processes of the tests there are. */
const processes = () =>
  spawnSync('ps', ['-axo', 'args='], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter((line) => line.includes('busy.mjs')).length;

describe.skipIf(!hasWine)('Node.js for Windows, under Wine', { timeout: 600_000 }, () => {
  const windows = useWindows(['collectives', 'store', 'launch']);

  it('passes the contract suite on tcp', async () => {
    expect(await windows.finished(['contract.mjs'])).toBe(0);
    const { platform, tests, failed } = JSON.parse(windows.read('result.txt'));
    expect([platform, failed]).toEqual(['win32', []]);
    expect(tests).toBeGreaterThan(100);
  });

  it('runs two ranks by the launcher, which fall back to tcp', async () => {
    expect([
      await windows.finished([...ringwise, 'sum.mjs']),
      windows.read('output.txt').match(/TCP_FALLBACK/g)?.length,
    ]).toEqual([0, 1]);
    expect([windows.read('rank-0.txt'), windows.read('rank-1.txt')]).toEqual([
      'win32 tcp true',
      'win32 tcp true',
    ]);
  });

  it('tells a rank a signal when another has failed', async () => {
    expect(await windows.finished([...ringwise, 'fails.mjs'])).toBe(1);
    expect(windows.read('output.txt')).toContain('ringwise: rank 1 of 2 failed (exit code 1)');
    expect(windows.read('handled.txt')).toBe('SIGTERM');
  });

  it('ends ranks with a launcher that is killed, also busy ones', async () => {
    const launcher = windows.start([...ringwise, 'busy.mjs']);
    const areBusy = () => [0, 1].every((rank) => existsSync(join(windows.folder, `busy-${rank}.txt`)));
    await expect.poll(areBusy, { timeout: 60_000 }).toBe(true);
    launcher.kill('SIGKILL');
    await expect.poll(processes, { timeout: 20_000 }).toBe(0);
  });
});
