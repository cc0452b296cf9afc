// Runs publint and attw on packed packages.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { root } from '../run.mjs';

const runFile = promisify(execFile);
const limitMs = 120_000;

/** Returns what publint (strict) and attw say against packages, as sentences. */
export async function faultsOfLint(packed) {
  const faults = [];
  for (const entry of packed) faults.push(...(await faultsOf(entry)));
  return faults;
}

async function faultsOf({ folder, tarball, manifest, isCompiled }) {
  const { messages, pkg } = await publint({ pkgDir: folder, strict: true, pack: false });
  const said = messages.map((message) => `${manifest.name}: publint: ${formatMessage(message, pkg)}`);
  return [...said, ...(await faultsOfTypes({ tarball, manifest, isCompiled }))];
}

/** attw checks the resolution of a package's entries. Compiled packages have no types, and it says so of them. */
async function faultsOfTypes({ tarball, manifest, isCompiled }) {
  const attw = join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js');
  const ignored = isCompiled ? ['--ignore-rules', 'untyped-resolution'] : [];
  const args = [attw, tarball, '--profile', 'esm-only', '--format', 'ascii', ...ignored];
  try {
    const { stdout } = await runFile(process.execPath, args, { timeout: limitMs });
    // It finds no fault in a package of which no entry has types.
    return isCompiled || !stdout.includes('does not contain types')
      ? []
      : [`${manifest.name}: attw: no entry has types.`];
  } catch (error) {
    return [`${manifest.name}: attw: ${error.stdout || error.stderr || error.message}`];
  }
}
