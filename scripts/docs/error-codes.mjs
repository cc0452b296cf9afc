// Finds error codes of the packages that neither docs/errors.md nor the package's README describes.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { publicPackages } from './exports.mjs';
import { readPage } from './pages.mjs';

/** Returns the error codes that the sources of a package name. */
export function codesOf(name) {
  const folder = join('packages', name, 'src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const own = new RegExp(`'(ERR_${prefixes[name] ?? name.toUpperCase()}_[A-Z_]+)'`, 'g');
  const hits = files.flatMap((file) => [...readFileSync(join(folder, file), 'utf8').matchAll(own)]);
  return [...new Set(hits.map(([, code]) => code))].sort();
}

/** Packages whose codes have another word than the package. */
const prefixes = { collectives: 'COLL' };

/** Returns the faults, one line each. */
export function errorCodeFaults() {
  const common = readPage('docs/errors.md');
  return publicPackages().flatMap((name) => {
    const text = common + readPage(join('packages', name, 'README.md'));
    return codesOf(name)
      .filter((code) => !new RegExp(`${code}(?![A-Z_])`).test(text))
      .map((code) => `neither docs/errors.md nor packages/${name}/README.md describes ${code}`);
  });
}
