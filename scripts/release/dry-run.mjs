// `npm run release:dry-run`: builds, publishes everything to a registry on the loopback interface, installs it into
// empty projects with npm, pnpm and Yarn, and runs programs there with several versions of Node.js.
// --nodes 20,22,24 says which versions; they are downloaded from npm once, into node_modules/.cache.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, run, vitestWith } from '../run.mjs';

const { values } = parseArgs({ options: { nodes: { type: 'string', default: '20,22,24' } } });

/** Returns the path of the newest Node.js with a major version, from the npm package that brings it. */
async function nodeOf(major) {
  const os = process.platform === 'win32' ? 'win' : process.platform;
  const name = `node-${os}-${process.arch}`;
  const folder = join(root, 'node_modules/.cache/ringwise-nodes', major);
  const path = join(folder, 'node_modules', name, process.platform === 'win32' ? 'bin/node.exe' : 'bin/node');
  if (existsSync(path)) return path;
  const flags = ['--prefix', folder, '--no-audit', '--no-fund', '--no-save', '--loglevel=error'];
  if ((await run('npm', 'install', ...flags, `${name}@${major}`)) !== 0 || !existsSync(path))
    throw new Error(`Node ${major} could not be installed from the package ${name}`);
  return path;
}

try {
  const nodes = [];
  for (const major of values.nodes.split(',').filter(Boolean)) nodes.push(await nodeOf(major));
  const code =
    (await run('npm', 'run', '-s', 'build')) ||
    (await vitestWith({ RINGWISE_TEST_NODES: nodes.join(':') }, ['scripts-full'], 'test/full/packages/'));
  process.exitCode = code;
} catch (error) {
  console.error(`release:dry-run: ${error.message}`);
  process.exitCode = 1;
}
