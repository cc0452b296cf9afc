// Reads from the built declarations which names each package exports.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Packages whose names docs may use without an import, from the one that wins to the last. */
const packages = ['collectives', 'ddp', 'launch', 'store', 'tensor', 'data', 'elastic', 'tfjs'];

/** Returns the entry points of a package, as [specifier, declaration file]. */
export function entryPoints(name) {
  const folder = join('packages', name);
  const { name: full, exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return Object.entries(exports)
    .filter(([, target]) => typeof target === 'object' && target.types)
    .map(([path, target]) => [`${full}${path.slice(1)}`, join(folder, target.types)]);
}

/** Returns the names that a built declaration file exports. */
export function namesIn(declarations) {
  return [...readFileSync(declarations, 'utf8').matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(
    ([, list]) =>
      list
        .split(',')
        .map((item) => /(?:\bas\s+)?([\w$]+)\s*$/.exec(item)?.[1])
        .filter((name) => name !== undefined && name !== 'default'),
  );
}

/** Returns the specifier from which each exported name comes; a name of several packages is the first one's. */
export function exportTable() {
  const table = new Map();
  for (const name of packages) {
    for (const [specifier, file] of entryPoints(name)) {
      if (/\/(testing|bench|doctor|flight|cli)$/.test(specifier)) continue;
      if (!existsSync(file)) throw new Error(`check-docs: ${file} is not built. Run: npm run build`);
      for (const each of namesIn(file)) if (!table.has(each)) table.set(each, specifier);
    }
  }
  return table;
}

/** All packages of the project that users install. */
export const publicPackages = () => readdirSync('packages').filter((name) => name !== 'testing');
