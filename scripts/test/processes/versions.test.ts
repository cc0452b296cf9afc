// Tests which version a release gets, with the real configuration and manifests, in a copy of them.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { publishedPackages } from '../../release/packages.mjs';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Describes a change in a copy of the repository, raises the versions, and returns its packages and the folder. */
function raised(kind: string, name: string) {
  const copy = mkdtempSync(join(tmpdir(), 'ringwise-versions-'));
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
  const manifests = publishedPackages(root).map(({ folder }) => `${folder}/package.json`);
  const others = ['packages/testing/package.json', 'native/package.json', 'examples/package.json'];
  for (const path of [
    'package.json',
    'pnpm-workspace.yaml',
    '.changeset/config.json',
    ...manifests,
    ...others,
  ]) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    cpSync(join(root, path), join(copy, path));
  }
  const before = publishedPackages(copy)[0]!.manifest.version;
  writeFileSync(join(copy, '.changeset/change.md'), `---\n'${name}': ${kind}\n---\n\nA change.\n`);
  execFileSync('git', ['init', '-q', copy]);
  const changeset = join(root, 'node_modules/@changesets/cli/bin.js');
  execFileSync(process.execPath, [changeset, 'version'], { cwd: copy, stdio: 'pipe' });
  return { copy, before, packages: publishedPackages(copy) };
}

it.each([
  ['minor', '@ringwise/store'],
  ['minor', '@ringwise/collectives-linux-x64'],
  ['patch', '@ringwise/tensor'],
])('a %s change of %s raises all packages together, below 1.0.0', (kind, name) => {
  const { copy, before, packages } = raised(kind, name);
  const [major, minor, patch] = before.split('.').map(Number) as [number, number, number];
  const next = kind === 'minor' ? `${major}.${minor + 1}.0` : `${major}.${minor}.${patch + 1}`;
  expect(new Set(packages.map(({ manifest }) => manifest.version))).toEqual(new Set([next]));
  const { folder } = packages.find(({ manifest }) => manifest.name === name)!;
  expect(existsSync(join(copy, folder, 'CHANGELOG.md'))).toBe(true);
  expect(readFileSync(join(copy, folder, 'CHANGELOG.md'), 'utf8')).toContain(`## ${next}`);
});
