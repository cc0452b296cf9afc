// Publishes tarballs, one after the other.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const runFile = promisify(execFile);

/** Longest time in ms that publishing one package may take. */
const limitMs = 300_000;

/**
 * Publishes packed packages to `registry` in the order given, so that a package never lacks what it needs. Stops at the
 * first failure. Versions that the registry has already are left out, so that a release that was interrupted can be
 * repeated. `report` receives a line per package.
 */
export async function publishAll(packed, { registry, args = [], env = process.env, report = () => {} }) {
  const where = registry === undefined ? [] : ['--registry', registry];
  for (const { tarball, manifest } of packed) {
    const { name, version } = manifest;
    if (await isPublished(`${name}@${version}`, where, env)) {
      report(`${name} ${version} is published already`);
      continue;
    }
    await npm(['publish', tarball, '--access', 'public', ...where, ...args], env);
    report(`published ${name} ${version}`);
  }
}

const npm = (args, env) => runFile('npm', args, { env, timeout: limitMs });

async function isPublished(spec, where, env) {
  try {
    const { stdout } = await npm(['view', spec, 'version', '--json', ...where], env);
    return stdout.trim() !== '';
  } catch (error) {
    if (/\bE404\b/.test(`${error.stdout}${error.stderr}`)) return false;
    throw error;
  }
}
