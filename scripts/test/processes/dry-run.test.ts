// Tests the command `npm run release:dry-run`: its options, its exit codes, and its end by Ctrl-C. The part `packages`
// of `npm run test:all` has the tests that it runs.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { missingBinaries } from '../../release/dry-run/missing.mjs';
import { publishedPackages } from '../../release/packages.mjs';
import { root } from '../support/clean-room.ts';

const script = 'scripts/release/dry-run.mjs';
const dryRun = (...args: readonly string[]) =>
  spawnSync(process.execPath, [script, ...args], { cwd: root, encoding: 'utf8', timeout: 240_000 });

it('--help describes the options and exit codes', () => {
  const { status, stdout } = dryRun('--help');
  expect(status).toBe(0);
  for (const word of ['--nodes', '--require-all', '--without', '--no-build', '130'])
    expect(stdout).toContain(word);
});

it.each([
  [['--node', '20'], "Unknown option '--node'"],
  [['--nodes', '20,latest'], '--nodes has "latest"; expected major versions from 20 on'],
  [['--nodes', '18'], '--nodes has "18"'],
  [['--without', '@ringwise/x'], 'no package has a name that begins so'],
  [['--without', '@ringwise/formats'], '@ringwise/formats cannot be left out'],
  [['now'], 'Unexpected argument'],
])('%j is a wrong argument', (args, sentence) => {
  const { status, stderr } = dryRun(...args);
  expect(stderr).toContain(sentence);
  expect(status).toBe(2);
});

it.skipIf(missingBinaries(publishedPackages(root), root).length === 0)(
  '--require-all refuses where binaries are missing, and names them',
  () => {
    const { status, stderr } = dryRun('--no-build', '--require-all');
    expect(stderr).toMatch(/refused, because of\n {2}@ringwise\/\S+ has no \S+/);
    expect(status).toBe(1);
  },
);

it('Ctrl-C ends what it has started and removes what it has made', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-interrupted-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const env = { ...process.env, TMPDIR: folder };
  const child = spawn(process.execPath, [script, '--no-build', '--nodes', ''], { cwd: root, env });
  const ended = once(child, 'exit');
  let stdout = '';
  await new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      if (stdout.includes(' s  packing')) resolve();
    });
  });
  // The folder is made before, and filled by other processes from now on.
  expect(readdirSync(folder)).toEqual([expect.stringMatching(/^ringwise-dry-run-/)]);
  child.kill('SIGINT');
  expect(await ended).toEqual([130, null]);
  expect(readdirSync(folder)).toEqual([]);
  // Processes that have been killed may take a moment to disappear.
  await expect.poll(() => execFileSync('ps', ['-axo', 'args='], { encoding: 'utf8' })).not.toContain(folder);
});
