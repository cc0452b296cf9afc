// Reads compiled files of any platform, without tools of that platform.
import { readFileSync } from 'node:fs';
import { isElf, readElf } from './elf.mjs';
import { isMachO, readMachO } from './mach-o.mjs';
import { isPe, readPe } from './pe.mjs';

/**
 * Returns the facts of a shared library or addon; null if the file is none for Linux, macOS or Windows:
 *   format     'elf', 'mach-o' or 'pe'
 *   os, cpu    as in package.json; cpu is null for a processor other than x64 and arm64
 *   libc       'glibc' or 'musl'; null if the file uses no C library, and outside Linux
 *   libraries  names of the libraries that it needs
 *   versions   versions of symbols that it needs, such as 'GLIBC_2.28'; outside Linux empty
 *   exports    names that it defines for others
 *   imports    names that others must define for it; outside Linux empty
 *   minimumOs  oldest version of macOS or Windows that loads it, such as '11.0'; null on Linux
 *   isSigned   whether a file for macOS has a code signature; null elsewhere
 * Throws an error that names the file if it is damaged.
 */
export function readBinary(path) {
  const bytes = readFileSync(path);
  try {
    if (isElf(bytes)) return readElf(bytes);
    if (isMachO(bytes)) return readMachO(bytes);
    return isPe(bytes) ? readPe(bytes) : null;
  } catch (error) {
    throw new Error(`${path} cannot be read as a compiled file: ${error.message}`, { cause: error });
  }
}

/** Returns the newest version of those that begin with `prefix`, as text such as '2.28'; null if there is none. */
export function newestVersion(versions, prefix) {
  const numbers = versions.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  // GLIBC_PRIVATE is no number.
  return (
    numbers
      .filter((text) => /^[\d.]+$/.test(text))
      .sort(compareVersions)
      .at(-1) ?? null
  );
}

/** Compares two versions given as text, such as '2.4' and '2.28', as sort() expects. */
export function compareVersions(a, b) {
  const [first, second] = [a, b].map((text) => text.split('.').map(Number));
  for (let index = 0; index < Math.max(first.length, second.length); ++index) {
    const difference = (first[index] ?? 0) - (second[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
