// Tests that nothing is published while release.config.json has something to do.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { root } from '../support/clean-room.ts';

it('a release is refused while the address of the repository is to do', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-refused-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const config = { author: 'A', repository: 'TODO: an address', branch: 'main', glibc: '2.28' };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const args = ['scripts/release/release.mjs', '--check', '--config', join(folder, 'config.json')];
  const ended = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', timeout: 60_000 });
  expect(ended.stderr).toBe(
    'release: nothing was published, because of\n' +
      '  release.config.json: "repository" is still to do (TODO: an address).\n',
  );
  expect(ended.status).toBe(1);
});
