// Tests that every published package, packed and installed alone into an empty project, runs its README's
// first snippet. npm gets only the tarballs: no network, no workspace.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const platform = `${process.platform}-${process.arch}`;
/** The npm packages with compiled parts that this platform installs, and the binaries that each must contain. */
const compiled: Readonly<Record<string, readonly string[]>> = {
  [`capi-${platform}`]: ['libringwise.so'],
  [`collectives-${platform}`]: ['coll.node'],
  [`tensor-${platform}`]: ['tensor.node'],
};
const packages = ['store', 'collectives', 'ddp', 'formats', 'tensor', 'data', 'launch', 'ringwise'];

interface Manifest {
  readonly name: string;
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
}

const isCompiled = (name: string): boolean => /-(linux|linuxmusl|darwin|win32)-/.test(name);

function folderOf(name: string): string {
  return isCompiled(name) ? `native/npm/${name}` : `packages/${name}`;
}

/** Returns the package and all our packages that it needs on this platform. */
function closureOf(name: string, seen = new Set<string>()): Set<string> {
  if (seen.has(name)) return seen;
  seen.add(name);
  const manifest = JSON.parse(readFileSync(join(root, folderOf(name), 'package.json'), 'utf8')) as Manifest;
  const needs = { ...manifest.dependencies, ...manifest.optionalDependencies };
  for (const need of Object.keys(needs)) {
    if (!need.startsWith('@ringwise/')) continue;
    const ours = need.replace('@ringwise/', '');
    if (!isCompiled(ours) || Object.hasOwn(compiled, ours)) closureOf(ours, seen);
  }
  return seen;
}

function firstSnippet(name: string): string {
  const readme = readFileSync(join(root, folderOf(name), 'README.md'), 'utf8');
  const match = /```(?:js|javascript)\n([\s\S]*?)```/.exec(readme);
  if (!match) throw new Error(`packages/${name}/README.md has no JavaScript snippet`);
  return match[1]!;
}

function run(command: string, args: string[], cwd: string): string {
  // The test runner's own variables would change what npm and node do.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([key]) => !/^(npm_|VITEST|NODE_OPTIONS|NODE_ENV|TEST$)/.test(key)),
  );
  return execFileSync(command, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

describe('packed, installed alone', () => {
  let work = '';
  const tarballs = new Map<string, string>();

  beforeAll(() => {
    work = mkdtempSync(join(tmpdir(), 'ringwise-pack-'));
    const pnpm = join(root, 'node_modules/.bin/pnpm');
    for (const name of [...packages, ...Object.keys(compiled)]) {
      const lines = run(pnpm, ['pack', '--json', '--pack-destination', work], join(root, folderOf(name)));
      tarballs.set(name, (JSON.parse(lines) as { filename: string }).filename);
    }
  });
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  it.each(Object.entries(compiled))('%s has its own binaries and no others', (name, expected) => {
    const paths = run('tar', ['tzf', tarballs.get(name)!], work).split('\n');
    const binaries = paths.filter((path) => /\.(node|so)$/.test(path));
    expect(binaries.toSorted()).toEqual(expected.map((file) => `package/${file}`));
  });

  it.each(packages)('%s runs the first snippet of its README', (name) => {
    const project = join(work, `use-${name}`);
    mkdirSync(project);
    writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
    const files = [...closureOf(name)].map((need) => tarballs.get(need)!);
    run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--loglevel=error', ...files], project);
    writeFileSync(join(project, 'snippet.mjs'), firstSnippet(name));
    expect(run(process.execPath, ['snippet.mjs'], project)).not.toBe('');
  });
});
