// Checks the manifests of the packages that a release publishes, without packing them: one version, no install scripts,
// and for compiled packages that their names, platforms and owners agree. `npm run release -- --check` checks more.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readBinary } from '../cross/binary.mjs';
import { readConfig, todosOf } from '../release/config.mjs';
import { namedFiles, publishedPackages } from '../release/packages.mjs';
import { root } from '../run.mjs';

/** Compiled packages that a user installs when needed. All others are optional dependencies of their owner. */
const onRequest = /^@ringwise\/capi-/;

/** Returns the faults of all packages below a root, one sentence each. */
export function faultsIn(root) {
  const packages = publishedPackages(root);
  const versions = new Set(packages.map(({ manifest }) => manifest.version));
  const uneven = versions.size > 1 ? [`the packages have the versions ${[...versions].join(', ')}.`] : [];
  return [...uneven, ...packages.flatMap((entry) => faultsOf(root, entry, packages))];
}

function faultsOf(root, { folder, manifest, isCompiled }, packages) {
  const faults = [];
  if (!existsSync(join(root, folder, 'README.md'))) faults.push('there is no README.md.');
  for (const key of ['description', 'license', 'files', 'exports'])
    if (manifest[key] === undefined) faults.push(`package.json has no "${key}".`);
  for (const key of ['preinstall', 'install', 'postinstall'])
    if (manifest.scripts?.[key]) faults.push(`package.json has the install script "${key}".`);
  if (isCompiled) faults.push(...faultsOfCompiled(root, folder, manifest, packages));
  return faults.map((fault) => `${folder}: ${fault}`);
}

function faultsOfCompiled(root, folder, manifest, packages) {
  const { name, os = [], cpu = [], libc = [] } = manifest;
  const platform = `${os}${libc[0] === 'musl' ? 'musl' : ''}-${cpu}`;
  if (!name.endsWith(`-${platform}`))
    return [`"os", "cpu" and "libc" say ${platform}; expected what the name ${name} says.`];
  const faults = [];
  if (os[0] === 'linux' && libc.length !== 1) faults.push('"libc" must say glibc or musl.');
  const owner = name.slice(0, -platform.length - 1);
  const needs = packages.find(({ manifest }) => manifest.name === owner)?.manifest.optionalDependencies;
  if (!onRequest.test(name) && !needs?.[name])
    faults.push(`${owner} must have it in its optionalDependencies.`);
  for (const path of namedFiles(manifest)) {
    const file = join(root, folder, path);
    const built = existsSync(file) ? readBinary(file) : null;
    if (built === null) continue; // what is not built here, a release finds
    if (built.os !== os[0] || built.cpu !== cpu[0])
      faults.push(`${path} is for ${built.os}-${built.cpu}; expected ${os}-${cpu}.`);
  }
  return faults;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const config = todosOf(readConfig(root, { isRehearsal: true }));
  for (const fault of [...config, ...faultsIn(root)]) {
    console.error(`check-packages: ${fault}`);
    process.exitCode = 1;
  }
}
