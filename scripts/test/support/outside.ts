// Packed packages of ours, and projects outside of the repository in which they are installed. npm gets only the
// tarballs: no network, no workspace.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './clean-room.ts';

const platform = `${process.platform}-${process.arch}`;

/** The npm packages with compiled parts that this platform installs, and the binaries that each must contain. */
export const compiled: Readonly<Record<string, readonly string[]>> = {
  [`capi-${platform}`]: ['libringwise.so'],
  [`collectives-${platform}`]: ['coll.node'],
  [`tensor-${platform}`]: ['tensor.node'],
};

interface Manifest {
  readonly name: string;
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
  readonly peerDependenciesMeta?: Record<string, { readonly optional?: boolean }>;
}

const isCompiled = (name: string): boolean => /-(linux|linuxmusl|darwin|win32)-/.test(name);

/** Returns the folder of a package, from the root. */
export function folderOf(name: string): string {
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

/** Runs a command, and returns what it wrote to stdout. Throws if it fails. */
export function run(command: string, args: string[], cwd: string): string {
  // The test runner's own variables would change what npm and node do.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([key]) => !/^(npm_|VITEST|NODE_OPTIONS|NODE_ENV|TEST$)/.test(key)),
  );
  return execFileSync(command, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/**
 * Links the peers that a package must have, which are not ours, from the workspace into a project: npm has no network
 * here, and was told to leave them out.
 */
function linkPeers(name: string, project: string): void {
  const manifest = JSON.parse(readFileSync(join(root, folderOf(name), 'package.json'), 'utf8')) as Manifest;
  for (const peer of Object.keys(manifest.peerDependencies ?? {})) {
    if (manifest.peerDependenciesMeta?.[peer]?.optional) continue;
    const target = join(project, 'node_modules', peer);
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(realpathSync(join(root, folderOf(name), 'node_modules', peer)), target);
  }
}

/** Packs a package into the folder `into`, and returns the path of the tarball. */
export function pack(name: string, into: string): string {
  const pnpm = join(root, 'node_modules/.bin/pnpm');
  const lines = run(pnpm, ['pack', '--json', '--pack-destination', into], join(root, folderOf(name)));
  return (JSON.parse(lines) as { filename: string }).filename;
}

/** Makes a project with packages of ours and what they need. `tarballOf` gives the tarball of each. */
export function makeProject(
  project: string,
  names: readonly string[],
  tarballOf: (name: string) => string,
): void {
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  const needs = new Set<string>();
  for (const name of names) closureOf(name, needs);
  const flags = ['--offline', '--legacy-peer-deps', '--no-audit', '--no-fund', '--loglevel=error'];
  run('npm', ['install', ...flags, ...[...needs].map(tarballOf)], project);
  for (const name of names) linkPeers(name, project);
}
