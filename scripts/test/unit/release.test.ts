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
import { elf, machines } from '../support/elf.ts';

const config = {
  author: 'A',
  repository: 'https://github.com/a/b',
  branch: 'main',
  glibc: '2.28',
};

/** Writes a package without faults, changed as given, and returns it as pack.mjs would. */
function packed(change: Record<string, unknown> = {}, files: Record<string, string | Buffer> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-gates-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const all = { 'README.md': '# a', LICENSE: 'MIT', 'a.node': elf(), ...files };
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
  const musl = { 'a.node': elf({ glibc: null, libraries: ['libc.so'] }) };
  expect(faultsOfPackage(packed({ libc: ['musl'] }, musl), config)).toEqual([]);
  const mpi = { 'mpi-openmpi.node': elf({ libraries: ['libc.so.6', 'libmpi.so.40'] }) };
  expect(faultsOfPackage(packed({}, mpi), config)).toEqual([]);
});

it('a compiled file belongs into a package of one platform', () => {
  const [fault, ...others] = faultsOfPackage({ ...packed(), isCompiled: false }, config);
  expect(fault).toContain('a.node is compiled; expected compiled files only in packages of one platform');
  expect(others).toEqual([]);
});

type Change = readonly [change?: Record<string, unknown>, files?: Record<string, string | Buffer>];

it.each<readonly [string, Change, string]>([
  ['a file that is missing', [{ exports: { '.': { types: './b.d.ts' } } }], 'names b.d.ts, which is not'],
  ['a command that is missing', [{ bin: { a: './bin/a.js' } }], 'names bin/a.js'],
  [
    'another processor',
    [{}, { 'a.node': elf({ machine: machines.arm64 }) }],
    'a.node is for linux-arm64-glibc; expected linux-x64-glibc',
  ],
  [
    'a newer glibc',
    [{}, { 'a.node': elf({ glibc: '2.34' }) }],
    'a.node needs glibc 2.34; expected at most 2.28',
  ],
  ['glibc on musl', [{ libc: ['musl'] }], 'a.node is for linux-x64-glibc; expected linux-x64-musl'],
  [
    'musl on glibc',
    [{}, { 'a.node': elf({ glibc: null, libraries: ['libc.so'] }) }],
    'a.node is for linux-x64-musl; expected linux-x64-glibc',
  ],
  [
    'a library that a system may lack',
    [{}, { 'a.node': elf({ libraries: ['libc.so.6', 'libstdc++.so.6'] }) }],
    'a.node needs libstdc++.so.6, which not every linux has; link it statically',
  ],
  [
    'a library of musl that a system may lack',
    [
      { libc: ['musl'] },
      { 'a.node': elf({ glibc: null, libraries: ['libc.musl-x86_64.so.1', 'libgcc_s.so.1'] }) },
    ],
    'a.node needs libgcc_s.so.1, which not every linux has',
  ],
  [
    'an addon that Node refuses',
    [{}, { 'a.node': elf({ exports: ['main'] }) }],
    'a.node does not export napi_register_module_v1, node_api_module_get_api_version_v1',
  ],
  [
    'a C library without its functions',
    [{}, { 'libringwise.so': elf() }],
    'libringwise.so does not export ringwise_abi_version, ringwise_group_create',
  ],
  [
    'an addon that copies memory by itself',
    [{}, { 'coll.node': elf({ imports: ['memchr'] }) }],
    'coll.node has a memcpy() of its own',
  ],
  [
    'an addon that is too large',
    [{}, { 'coll.node': Buffer.concat([elf(), Buffer.alloc(3e6)]) }],
    'expected at most 2500000',
  ],
  [
    'an addon that is none',
    [{}, { 'a.node': 'text' }],
    'a.node is no compiled file; expected one for linux-x64',
  ],
  [
    'an addon that is cut off',
    [{}, { 'a.node': elf().subarray(0, 200) }],
    'a.node cannot be read as a compiled file',
  ],
  [
    'an addon in a hidden place',
    [{}, { 'deep/er/b.node': elf({ machine: machines.arm64 }) }],
    'deep/er/b.node is for linux-arm64-glibc',
  ],
  [
    'a platform that nothing is built for',
    [{ cpu: ['riscv64'] }],
    'a.node is for "os", "cpu" and "libc" that no target of cross-build.mjs has',
  ],
  ['a dead link', [{}, { 'README.md': 'see [b](../b/README.md#c)' }], 'link ../b/README.md#c, which is dead'],
  ['a dead link to a sibling', [{}, { 'README.md': '[b](docs/b.md)' }], 'link docs/b.md, which is dead'],
  ['a dead definition', [{}, { 'README.md': 'a [b]\n\n[b]: ../b.md\n' }], 'link ../b.md, which is dead'],
  ['a dead image', [{}, { 'README.md': '<img src="../b.png">' }], 'link ../b.png, which is dead'],
  ['an install script', [{ scripts: { postinstall: 'x' } }], 'the install script "postinstall"'],
  ['a workspace range', [{ dependencies: { b: 'workspace:*' } }], '"b": "workspace:*" means nothing to npm'],
  ...['author', 'bugs', 'description', 'homepage', 'license', 'repository'].map(
    (key) => [`no ${key}`, [{ [key]: undefined }], `package.json has no "${key}"`] as const,
  ),
  [
    'an install script of another kind',
    [{ scripts: { preinstall: 'x' } }],
    'the install script "preinstall"',
  ],
  [
    'a link to the repository as a dependency',
    [{ optionalDependencies: { b: 'link:../b' } }],
    '"b": "link:../b" means nothing to npm',
  ],
  [
    "a person's folder",
    [{}, { 'a.js': "import '/home/jane/ringwise/b.js';" }],
    "a.js contains a person's folder: /home/jane/ringwise",
  ],
  [
    "a person's folder on Windows",
    [{}, { 'a.js.map': '{ "sources": ["C:\\\\Users\\\\jane\\\\a.ts"] }' }],
    "a.js.map contains a person's folder: C:",
  ],
  [
    'a path of this machine in a compiled file',
    [{}, { 'a.node': Buffer.concat([elf(), Buffer.from(join(root, 'native/a.cc'))]) }],
    `a.node contains a path of this machine: ${root.slice(0, -1)}`,
  ],
  [
    'the address of a tarball',
    [{}, { 'a.json': '{ "resolved": "https://npm.example.org/a/-/a-1.0.0.tgz" }' }],
    'a.json contains the address of a registry: https://npm.example.org/a/-/a-1.0.0.tgz',
  ],
  [
    'a registry',
    [{}, { npmrc: 'registry=http://localhost:4873/' }],
    'npmrc contains the address of a registry',
  ],
  ['a token', [{}, { npmrc: '//example.org/:_authToken=x' }], 'npmrc contains an access token'],
  ['sources in a map', [{}, { 'a.js.map': '{ "sourcesContent": ["x"] }' }], 'a.js.map contains the sources'],
])('%s is a fault', (_, [change, files], sentence) => {
  const faults = faultsOfPackage(packed(change, files), config);
  expect(faults).toHaveLength(1);
  expect(faults[0]).toContain(sentence);
});

it.each(['LICENSE', 'README.md'])('a package without %s is a fault', (name) => {
  const entry = packed();
  rmSync(join(entry.folder, name));
  expect(faultsOfPackage(entry, config)).toEqual([`@ringwise/a-linux-x64: there is no ${name}.`]);
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

  const all = {
    ...packed({ name: 'ringwise', dependencies: { '@ringwise/collectives': '1' } }),
    isCompiled: false,
  };
  expect(faultsOfSizes([packed({}, { large: 'x'.repeat(2.9e6) }), collectives, all])).toEqual([]);
  const tensor = packed({ name: '@ringwise/b-linux-x64' }, { large: 'x'.repeat(15e6) });
  const needs = { '@ringwise/collectives': '1', '@ringwise/b-linux-x64': '1' };
  const larger = { ...all, manifest: { ...all.manifest, dependencies: needs } };
  expect(faultsOfSizes([packed(), tensor, collectives, larger])).toEqual([
    expect.stringContaining('ringwise on linux-x64-glibc has 150'),
  ]);
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
  const { kept, faults } = without('@ringwise/capi-');
  expect(faults).toEqual([]);
  expect(kept).toEqual(packages.filter(({ manifest }) => !manifest.name.startsWith('@ringwise/capi-')));
  expect(kept.length).toBeLessThan(packages.length);
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
