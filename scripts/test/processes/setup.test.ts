import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { adviceOn, isOldNode } from '../../setup-advice.mjs';

const scripts = fileURLToPath(new URL('../..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(scripts, '../package.json'), 'utf8'));
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-setup-'));
  mkdirSync(join(folder, 'scripts'));
  for (const name of ['setup.mjs', 'setup-advice.mjs', 'run.mjs'])
    copyFileSync(join(scripts, name), join(folder, 'scripts', name));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs the set-up as `npm run -s setup` does, with a registry that does not exist. */
function setUp(fields: object) {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, ...fields }));
  const env = {
    ...process.env,
    npm_config_loglevel: 'silent',
    npm_config_registry: 'http://127.0.0.1:1',
    npm_config_cache: join(folder, 'cache'),
    npm_config_fetch_retries: '0',
  };
  return spawnSync(process.execPath, [join(folder, 'scripts/setup.mjs')], { encoding: 'utf8', env });
}

it('says that the registry cannot be reached, although npm run -s is silent', () => {
  const { status, stderr } = setUp({});
  expect(status).toBe(1);
  expect(stderr).toContain('the dependencies could not be installed');
  expect(stderr).toContain('The npm registry cannot be reached');
});

it('says which Node it needs', () => {
  const { status, stderr } = setUp({ engines: { node: '>=99.1.0' } });
  expect(status).toBe(1);
  expect(stderr).toContain('the repository needs Node >=99.1.0. Install a newer Node.');
});

it('compares versions by their numbers', () => {
  expect(['20.18.9', '20.19.0', '20.20.2', '24.1.0', '9.99.9'].map((v) => isOldNode(v, '>=20.19.0'))).toEqual(
    [true, false, false, false, true],
  );
});

it.each([
  [' ERR_PNPM_UNEXPECTED_STORE  Unexpected store location', 'another pnpm store'],
  ['npm error code EAI_AGAIN', 'cannot be reached'],
  ['ERR_PNPM_OUTDATED_LOCKFILE', 'pnpm-lock.yaml does not fit'],
  ['ENOSPC: no space left on device', 'The disk is full'],
  ['EACCES: permission denied', 'cannot be written'],
  ['something else', 'The lines above say why.'],
])('advises on %j', (output, advice) => expect(adviceOn(output)).toContain(advice));
