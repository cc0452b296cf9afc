// What must hold for packed packages before they are published. Each function returns the faults as sentences.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readBinary } from '../cross/binary.mjs';
import { faultsOfBinary, isNamedAsBinary } from '../cross/faults.mjs';
import { targetOf, targets } from '../cross/targets.mjs';
import { leaksIn } from './leaks.mjs';
import { namedFiles, needsOf } from './packages.mjs';

/** Largest installed size of a package with all that it needs on one platform, in bytes. */
const sizeLimits = { '@ringwise/collectives': 3e6, ringwise: 15e6 };

/** A link to another file of the repository: in Markdown, as a definition, or in HTML. */
const deadLink =
  /(?:\]\(|^\[[^\]]+\]:\s*|\b(?:src|href)=["'])(\.\.?\/[^)\s"']*|(?!https?:|mailto:)[\w./-]+\.\w+(?:#[^)\s"']*)?)(?=[)\s"'])/m;

/** Returns the paths of all files in a folder, relative to it. */
const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    statSync(join(folder, path)).isFile(),
  );

/** Returns the files that a package names and lacks. A compiled package that was not built here lacks all of them. */
export function missingFiles({ folder, manifest }) {
  return namedFiles(manifest).filter((path) => !path.includes('*') && !existsSync(join(folder, path)));
}

/** Checks one packed package: files, manifest, README, source maps and, for a compiled one, its binaries. */
export function faultsOfPackage(packed, config) {
  const { folder, manifest } = packed;
  const faults = [
    ...missingFiles(packed).map((path) => `package.json names ${path}, which is not in the package.`),
    ...faultsOfManifest(manifest),
  ];
  for (const name of ['LICENSE', 'README.md'])
    if (!existsSync(join(folder, name))) faults.push(`there is no ${name}.`);
  const readme = existsSync(join(folder, 'README.md')) ? readFileSync(join(folder, 'README.md'), 'utf8') : '';
  const link = deadLink.exec(readme)?.[1];
  if (link) faults.push(`README.md has the link ${link}, which is dead on a registry's page.`);
  for (const path of filesIn(folder)) {
    const text = readFileSync(join(folder, path), 'latin1');
    if (path.endsWith('.map') && JSON.parse(text).sourcesContent?.length)
      faults.push(`${path} contains the sources.`);
    faults.push(...leaksIn(path, text), ...faultsOfFile(path, packed, config));
  }
  return faults.map((fault) => `${manifest.name}: ${fault}`);
}

function faultsOfManifest(manifest) {
  const faults = [];
  for (const key of ['author', 'bugs', 'description', 'homepage', 'keywords', 'license', 'repository'])
    if (manifest[key] === undefined && !(key === 'keywords' && manifest.os))
      faults.push(`package.json has no "${key}".`);
  for (const key of ['preinstall', 'install', 'postinstall'])
    if (manifest.scripts?.[key]) faults.push(`package.json has the install script "${key}".`);
  for (const kind of ['dependencies', 'optionalDependencies', 'peerDependencies'])
    for (const [name, range] of Object.entries(manifest[kind] ?? {}))
      if (/^(workspace|link|file):/.test(range)) faults.push(`"${name}": "${range}" means nothing to npm.`);
  return faults;
}

function faultsOfFile(path, { folder, manifest, isCompiled }, config) {
  const file = join(folder, path);
  if (!isNamedAsBinary(path) && readBinary(file) === null) return [];
  if (!isCompiled) return [`${path} is compiled; expected compiled files only in packages of one platform.`];
  const name = targetOf(manifest);
  if (name === null) return [`${path} is for "os", "cpu" and "libc" that no target of cross-build.mjs has.`];
  const floor = targets[name].floor && config.glibc;
  return faultsOfBinary(file, name, { floor, shown: path });
}

/** Checks the installed size of the packages that have a limit, on each platform for which packages are given. */
export function faultsOfSizes(packed) {
  const platforms = [...new Set(packed.filter(({ isCompiled }) => isCompiled).map(platformOf))];
  return platforms.flatMap((platform) =>
    Object.entries(sizeLimits).flatMap(([name, limit]) => {
      const bytes = installedBytes(name, packed, platform);
      return bytes <= limit
        ? []
        : [`${name} on ${platform} has ${bytes} bytes installed; expected at most ${limit}.`];
    }),
  );
}

/** Returns the name of a compiled package's platform, such as linux-x64-glibc. */
export const platformOf = ({ manifest: { os, cpu, libc } }) =>
  [os, cpu, libc].flatMap((list) => list ?? []).join('-');

/** Returns the size of a package and of all of ours that it installs on a platform. */
export function installedBytes(name, packed, platform, seen = new Set()) {
  const entry = packed.find(({ manifest }) => manifest.name === name);
  if (!entry || seen.has(name) || (entry.isCompiled && platformOf(entry) !== platform)) return 0;
  seen.add(name);
  const own = filesIn(entry.folder).reduce((sum, path) => sum + statSync(join(entry.folder, path)).size, 0);
  const needs = needsOf(entry.manifest);
  return needs.reduce((sum, need) => sum + installedBytes(need, packed, platform, seen), own);
}
