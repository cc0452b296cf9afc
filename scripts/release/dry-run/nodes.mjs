// Finds other versions of Node.js, as npm packages bring them.
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../run.mjs';

/** Returns the path of the newest Node.js of a major version, which is downloaded once into node_modules/.cache. */
export async function nodeOf(major, run) {
  const isWindows = process.platform === 'win32';
  const name = `node-${isWindows ? 'win' : process.platform}-${process.arch}`;
  const folder = join(root, 'node_modules/.cache/ringwise-nodes', major);
  const path = join(folder, 'node_modules', name, isWindows ? 'bin/node.exe' : 'bin/node');
  if (existsSync(path)) return path;
  const flags = ['--prefix', folder, '--no-audit', '--no-fund', '--no-save', '--loglevel=error'];
  if ((await run('npm', ['install', ...flags, `${name}@${major}`])) === 0 && existsSync(path)) return path;
  rmSync(folder, { recursive: true, force: true });
  throw new Error(`Node ${major} could not be installed from the npm package ${name}. Check the network.`);
}
