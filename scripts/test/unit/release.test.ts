// Tests the gates of a release on packages made for it, each with one fault.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readConfig, todosOf } from '../../release/config.mjs';
import { faultsOfPackage, faultsOfSizes } from '../../release/gates.mjs';
import { publishedPackages, withoutPackages } from '../../release/packages.mjs';
import { absoluteLinks, filledManifest } from '../../release/publishable.mjs';
import { root } from '../support/clean-room.ts';

const config = {
  author: 'A',
  repository: 'https://github.com/a/b',
  branch: 'main',
  glibc: '2.28',
};

/** An ELF file for a machine that needs symbols of two versions of glibc. Layout as in elf(5). */
function elf(machine: number, glibc: string): Buffer {
  const names = Buffer.from(`\0GLIBC_2.4\0GLIBC_${glibc}\0`);
  const needs = Buffer.alloc(48);
  needs.writeUInt16LE(2, 2); // versions
  needs.writeUInt32LE(16, 8); // offset of the first
  [1, 11].forEach((name, index) => {
    needs.writeUInt32LE(name, 24 + index * 16);
    needs.writeUInt32LE(16, 28 + index * 16); // offset of the next
  });
  const sections = Buffer.alloc(128);
  sections.writeBigUInt64LE(64n, 24); // names, behind the header
  sections.writeUInt32LE(0x6ffffffe, 68);
  sections.writeBigUInt64LE(BigInt(64 + names.length), 88);
  sections.writeUInt32LE(1, 108); // files in the second section; its names are in section 0
  const header = Buffer.alloc(64);
  header.writeUInt32BE(0x7f454c46);
  header.writeUInt8(2, 4); // 64 bits
  header.writeUInt8(1, 5); // little-endian
  header.writeUInt16LE(machine, 18);
  header.writeBigUInt64LE(BigInt(64 + names.length + needs.length), 40);
  header.writeUInt16LE(64, 58); // bytes of a section's header
  header.writeUInt16LE(2, 60); // sections
  return Buffer.concat([header, names, needs, sections]);
}

const x64 = 0x3e;
const arm64 = 0xb7;

/** Writes a package without faults, changed as given, and returns it as pack.mjs would. */
function packed(change: Record<string, unknown> = {}, files: Record<string, string | Buffer> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-gates-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const all = { 'README.md': '# a', LICENSE: 'MIT', 'a.node': elf(x64, '2.17'), ...files };
  for (const [path, content] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  const manifest = {
    ...filledManifest(
      { name: '@ringwise/a-linux-x64', description: 'a', license: 'MIT', keywords: ['a'] },
      config,
      'native/npm/a-linux-x64',
    ),
    os: ['linux'],
    cpu: ['x64'],
    libc: ['glibc'],
    exports: { './a.node': './a.node' },
    ...change,
  };
  return { folder, tarball: '', manifest, isCompiled: true };
}

it('a package without faults passes', () => {
  expect(faultsOfPackage(packed(), config)).toEqual([]);
});

type Change = readonly [change?: Record<string, unknown>, files?: Record<string, string | Buffer>];

it.each<readonly [string, Change, string]>([
  ['a file that is missing', [{ exports: { '.': { types: './b.d.ts' } } }], 'names b.d.ts, which is not'],
  ['a command that is missing', [{ bin: { a: './bin/a.js' } }], 'names bin/a.js'],
  [
    'another processor',
    [{}, { 'a.node': elf(arm64, '2.17') }],
    'a.node is for linux-arm64; expected linux-x64',
  ],
  ['a newer glibc', [{}, { 'a.node': elf(x64, '2.34') }], 'needs glibc 2.34; expected at most 2.28'],
  ['glibc on musl', [{ libc: ['musl'] }], 'needs glibc, and the package is for musl'],
  ['a dead link', [{}, { 'README.md': 'see [b](../b/README.md#c)' }], '(../b/README.md#c), which is dead'],
  ['an install script', [{ scripts: { postinstall: 'x' } }], 'the install script "postinstall"'],
  ['a workspace range', [{ dependencies: { b: 'workspace:*' } }], '"b": "workspace:*" means nothing to npm'],
  ['no repository', [{ repository: undefined }], 'no "repository"'],
  ['sources in a map', [{}, { 'a.js.map': '{ "sourcesContent": ["x"] }' }], 'a.js.map contains the sources'],
])('%s is a fault', (_, [change, files], sentence) => {
  const faults = faultsOfPackage(packed(change, files), config);
  expect(faults).toHaveLength(1);
  expect(faults[0]).toContain(sentence);
});

it('a package that is too large on one platform is a fault', () => {
  const collectives = {
    ...packed({ name: '@ringwise/collectives', optionalDependencies: { '@ringwise/a-linux-x64': '1' } }),
    isCompiled: false,
  };
  expect(faultsOfSizes([packed(), collectives])).toEqual([]);
  const [fault, ...others] = faultsOfSizes([packed({}, { large: 'x'.repeat(3e6) }), collectives]);
  expect(fault).toContain('@ringwise/collectives on linux-x64-glibc has 30');
  expect(others).toEqual([]);
});

it('compiled packages come first, and each package after those that it needs', () => {
  const names = publishedPackages(root).map(({ manifest }) => manifest.name);
  const isCompiled = (name: string): boolean => /-(linux|linuxmusl|darwin|win32)-/.test(name);
  expect(names.filter(isCompiled)).toEqual(names.slice(0, names.filter(isCompiled).length));
  expect(names.indexOf('@ringwise/store')).toBeLessThan(names.indexOf('@ringwise/collectives'));
  expect(names.at(-1)).toBe('ringwise');
});

it('packages can be left out if no other installs them', () => {
  const packages = publishedPackages(root);
  const without = (...prefixes: string[]) => withoutPackages(packages, prefixes);
  const { kept, faults } = without('@ringwise/collectives-mpi-');
  expect(faults).toEqual([]);
  expect(packages.length - kept.length).toBe(2);
  expect(without('@ringwise/formats').faults).toContain(
    '--without: @ringwise/formats cannot be left out, because @ringwise/tensor installs it.',
  );
  expect(without('@ringwise/x').faults).toEqual([
    '--without @ringwise/x: no package has a name that begins so.',
  ]);
});

it('what is still to do is named, and filled in only for a rehearsal', () => {
  expect(todosOf(config)).toEqual([]);
  expect(todosOf({ ...config, author: 'TODO: a name' })).toEqual([
    'release.config.json: "author" is still to do (TODO: a name).',
  ]);
  expect(todosOf({ ...config, repository: 'github.com/a/b' })[0]).toContain('expected "repository" as');
  expect(todosOf(readConfig(root, { isRehearsal: true }))).toEqual([]);
});

it('links to other files become addresses, and nothing else does', () => {
  const text = '[a](../../docs/a.md#b) [s](src/s.ts) [c](https://example.org) [d](#d) `x[Symbol.iterator]()`';
  expect(absoluteLinks(text, config, 'packages/x')).toBe(
    '[a](https://github.com/a/b/blob/main/docs/a.md#b) [s](https://github.com/a/b/blob/main/packages/x/src/s.ts) [c](https://example.org) [d](#d) `x[Symbol.iterator]()`',
  );
});
