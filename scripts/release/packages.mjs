// Lists the packages that a release publishes.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Folders that hold packages, from the root. Those of the first contain compiled files for one platform each. */
const holders = ['native/npm', 'packages'];

/**
 * Returns the packages that are not private, in the order in which they are published: the compiled ones first, each
 * other package after all packages that it needs, and the umbrella package last. So a package can be installed as soon
 * as it is published. `folder` is relative to the root.
 */
export function publishedPackages(root) {
  const found = holders.flatMap((holder) =>
    readdirSync(join(root, holder))
      .toSorted()
      .map((name) => `${holder}/${name}`)
      .filter((folder) => existsSync(join(root, folder, 'package.json')))
      .map((folder) => ({
        folder,
        manifest: JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')),
        isCompiled: folder.startsWith('native/'),
      })),
  );
  return inOrder(found.filter(({ manifest }) => manifest.private !== true));
}

/** Returns the names of the packages that a package installs: dependencies and optional ones. */
export function needsOf(manifest) {
  return Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });
}

/**
 * Leaves out the packages whose names begin with one of `prefixes`. Returns the others as `kept`, and in `faults` a
 * sentence for each package that one of them installs, and for each prefix that fits none.
 */
export function withoutPackages(packages, prefixes) {
  const isLeftOut = (name) => prefixes.some((prefix) => name.startsWith(prefix));
  const kept = packages.filter(({ manifest }) => !isLeftOut(manifest.name));
  const unknown = prefixes.filter(
    (prefix) => !packages.some(({ manifest }) => manifest.name.startsWith(prefix)),
  );
  return {
    kept,
    faults: [
      ...unknown.map((prefix) => `--without ${prefix}: no package has a name that begins so.`),
      ...kept.flatMap(({ manifest }) =>
        needsOf(manifest)
          .filter(isLeftOut)
          .map((name) => `--without: ${name} cannot be left out, because ${manifest.name} installs it.`),
      ),
    ],
  };
}

/** Returns the packages so that each comes after those that it needs, and `ringwise` last; otherwise in their order. */
function inOrder(packages) {
  const byName = new Map(packages.map((entry) => [entry.manifest.name, entry]));
  const ordered = new Set();
  const visit = (entry) => {
    if (ordered.has(entry)) return;
    for (const name of needsOf(entry.manifest)) if (byName.has(name)) visit(byName.get(name));
    ordered.add(entry);
  };
  const isUmbrella = ({ manifest }) => manifest.name === 'ringwise';
  for (const entry of packages) if (!isUmbrella(entry)) visit(entry);
  return [...ordered, ...packages.filter(isUmbrella)];
}

/** Returns the paths of all files that a package's `exports` and `bin` name, without the leading "./". */
export function namedFiles(manifest) {
  const leaves = (value) =>
    typeof value === 'string'
      ? [value]
      : value && typeof value === 'object'
        ? Object.values(value).flatMap(leaves)
        : [];
  return [...new Set([...leaves(manifest.exports), ...leaves(manifest.bin)])].map((path) =>
    path.replace(/^\.\//, ''),
  );
}
