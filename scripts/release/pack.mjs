// Packs packages as they are published: the files that pnpm packs, with a filled manifest and README.
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { absoluteLinks, filledManifest } from './publishable.mjs';

const runFile = promisify(execFile);

/** Longest time in ms that one command may take. */
const limitMs = 120_000;

/**
 * Packs the packages, which must be built, into the folder `into`. Resolves with one entry per package, in the same
 * order: `folder`, where its files lie as they will be installed, `tarball`, and the published `manifest`.
 */
export async function packAll(packages, { root, config, into }) {
  const packed = [];
  const queue = packages.entries();
  const worker = async () => {
    for (const [index, entry] of queue) packed[index] = await pack(entry, { root, config, into });
  };
  await Promise.all([worker(), worker()]);
  return packed;
}

async function pack({ folder, isCompiled }, { root, config, into }) {
  const place = join(into, folder.replaceAll('/', '-'));
  mkdirSync(place, { recursive: true });
  const pnpm = join(root, 'node_modules/.bin/pnpm');
  const source = await filename(pnpm, ['pack', '--json', '--pack-destination', place], join(root, folder));
  await runFile('tar', ['xzf', source, '-C', place], { timeout: limitMs });
  rmSync(source);

  const files = join(place, 'files');
  renameSync(join(place, 'package'), files);
  const edit = (name, change) => {
    const path = join(files, name);
    writeFileSync(path, change(readFileSync(path, 'utf8')));
  };
  let manifest;
  edit('package.json', (text) => {
    manifest = filledManifest(JSON.parse(text), config, folder);
    return `${JSON.stringify(manifest, null, 2)}\n`;
  });
  edit('README.md', (text) => absoluteLinks(text, config, folder));
  // pnpm leaves the licence out if the package contains another file whose name has that word.
  copyFileSync(join(root, 'LICENSE'), join(files, 'LICENSE'));

  const args = ['pack', files, '--json', '--ignore-scripts', '--pack-destination', place];
  const tarball = join(place, await filename('npm', args, place));
  return { folder: files, tarball, manifest, isCompiled };
}

/** Runs a command that packs, and resolves with the name of the tarball that it prints. */
async function filename(command, args, cwd) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('npm_')));
  const { stdout } = await runFile(command, args, { cwd, env, timeout: limitMs }).catch((error) => {
    // With --json, the reason is on the standard output.
    const reason = error.killed ? `it took more than ${limitMs / 1000} s` : `${error.stdout}${error.stderr}`;
    throw new Error(`${command} ${args[0]} in ${cwd} failed: ${reason}`, { cause: error });
  });
  const result = JSON.parse(stdout);
  return (Array.isArray(result) ? result[0] : result).filename;
}
