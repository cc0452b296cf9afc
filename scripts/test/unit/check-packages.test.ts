// Tests the check of manifests on trees made for it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { faultsIn } from '../../checks/packages.mjs';
import { root } from '../support/clean-room.ts';

const common = { version: '0.1.0', description: 'a', license: 'MIT', files: ['*.node'], exports: {} };
const compiled = {
  ...common,
  name: '@ringwise/a-linuxmusl-x64',
  os: ['linux'],
  cpu: ['x64'],
  libc: ['musl'],
};
const owner = { ...common, name: '@ringwise/a', optionalDependencies: { [compiled.name]: 'workspace:*' } };

function treeOf(first: object, second: object): string {
  const tree = mkdtempSync(join(tmpdir(), 'ringwise-manifests-'));
  onTestFinished(() => rmSync(tree, { recursive: true, force: true }));
  for (const [folder, manifest] of Object.entries({ 'packages/a': second, 'native/npm/a': first })) {
    mkdirSync(join(tree, folder), { recursive: true });
    writeFileSync(join(tree, folder, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(tree, folder, 'README.md'), '# a');
  }
  return tree;
}

it('the manifests of this repository have no faults', () => {
  expect(faultsIn(root)).toEqual([]);
});

it.each<readonly [string, object, object, readonly string[]]>([
  ['no fault', compiled, owner, []],
  [
    'two versions',
    { ...compiled, version: '0.2.0' },
    owner,
    ['the packages have the versions 0.2.0, 0.1.0.'],
  ],
  [
    'a platform that the name does not say',
    { ...compiled, libc: ['glibc'] },
    owner,
    ['"os", "cpu" and "libc" say linux-x64; expected what the name @ringwise/a-linuxmusl-x64 says.'],
  ],
  [
    'an owner that does not install it',
    compiled,
    { ...owner, optionalDependencies: {} },
    ['optionalDependencies.'],
  ],
  ['an install script', { ...compiled, scripts: { install: 'x' } }, owner, ['the install script "install".']],
])('%s', (_, first, second, sentences) => {
  const faults = faultsIn(treeOf(first, second));
  expect(faults).toHaveLength(sentences.length);
  sentences.forEach((sentence, index) => {
    expect(faults[index]).toContain(sentence);
  });
});
