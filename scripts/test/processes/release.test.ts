// Tests that nothing is published while release.config.json has something to do, and what publint and attw find.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { faultsOfLint } from '../../release/lint.mjs';
import { root } from '../support/clean-room.ts';

it('a release is refused while the address of the repository is to do', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-refused-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const config = { author: 'A', repository: 'TODO: an address', branch: 'main', glibc: '2.28' };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const args = ['scripts/release/release.mjs', '--check', '--config', join(folder, 'config.json')];
  const ended = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', timeout: 240_000 });
  expect(ended.stderr).toBe(
    'release: nothing was published, because of\n' +
      '  release.config.json: "repository" is still to do (TODO: an address).\n',
  );
  expect(ended.status).toBe(1);
});

/** Packs a package with these values in package.json and these files, as faultsOfLint() takes it. */
function packed(values: object, files: Readonly<Record<string, string>>, isCompiled: boolean) {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-lint-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const manifest = { name: 'a', version: '1.0.0', license: 'MIT', ...values };
  const place = join(folder, 'package');
  mkdirSync(place);
  const all = { ...files, 'package.json': JSON.stringify(manifest) };
  for (const [name, text] of Object.entries(all)) writeFileSync(join(place, name), text);
  const tarball = join(folder, 'a.tgz');
  execFileSync('tar', ['czf', tarball, '-C', folder, 'package']);
  return { folder: place, tarball, manifest, isCompiled };
}

const typed = {
  type: 'module',
  exports: { '.': { types: './a.d.ts', default: './a.js' } },
};

it('publint and attw find nothing in a good package, and a fault in each bad one', async () => {
  const code = { 'a.js': 'export const a = 1;', 'a.d.ts': 'export declare const a: number;' };
  expect(await faultsOfLint([packed(typed, code, false)])).toEqual([]);
  const isOrdered = { ...typed, exports: { '.': { default: './a.js', types: './a.d.ts' } } };
  expect((await faultsOfLint([packed(isOrdered, code, false)])).join()).toMatch(/^a: publint: /);
  const untyped = packed({ type: 'module', exports: './a.js' }, { 'a.js': code['a.js'] }, false);
  expect(await faultsOfLint([untyped])).toEqual(['a: attw: no entry has types.']);
  const half = { ...typed, exports: { ...typed.exports, './b': './b.js' } };
  const more = { ...code, 'b.js': 'export const b = 1;' };
  expect((await faultsOfLint([packed(half, more, false)])).join()).toMatch(/^a: attw: .*a\/b/s);
});

it('publint and attw check compiled packages, which have no types', async () => {
  const values = {
    type: 'commonjs',
    exports: { './a.node': './a.node', './package.json': './package.json' },
  };
  expect(await faultsOfLint([packed(values, { 'a.node': '' }, true)])).toEqual([]);
  expect((await faultsOfLint([packed(values, {}, true)])).join()).toMatch(/^a: publint: .*a\.node/);
});
