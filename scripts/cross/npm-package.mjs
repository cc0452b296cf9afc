// Downloads npm packages that only some commands need, such as a compiler, and keeps them in node_modules/.cache.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../run.mjs';

const cache = join(root, 'node_modules/.cache/ringwise');

/** Longest time in ms for the download of one package. */
const limitMs = 5 * 60_000;

/**
 * Returns the folder with the contents of an npm package, which is downloaded on the first call. No script of it runs.
 * `integrity` is the checksum that the registry must give for it. Blocks.
 */
export function npmPackage({ name, version, integrity }) {
  const folder = join(cache, `${name.replaceAll(/[@/]/g, '-').replace(/^-/, '')}-${version}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, 'download-'));
  try {
    const printed = command('npm', 'pack', `${name}@${version}`, '--json', '--pack-destination', work);
    const [packed] = JSON.parse(printed);
    if (packed.integrity !== integrity)
      throw new Error(
        `${name}@${version} has the checksum ${packed.integrity}; expected ${integrity}. Do not use it.`,
      );
    // npm's name of the file differs between versions of npm for packages with a scope.
    const file = packed.filename.replace(/^@/, '').replace('/', '-');
    command('tar', '-xf', join(work, file), '-C', work);
    renameSync(join(work, 'package'), folder);
    return folder;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Runs a command and returns what it prints; throws its error output if it fails. */
function command(name, ...args) {
  const { status, stdout, stderr, error } = spawnSync(name, args, {
    encoding: 'utf8',
    timeout: limitMs,
    maxBuffer: 2 ** 28,
  });
  if (error) throw new Error(`${name} cannot be started: ${error.message}`, { cause: error });
  if (status !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${status}: ${stderr.trim()}`);
  return stdout;
}
