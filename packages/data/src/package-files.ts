// Paths of this package's files. This module stays directly in src/, so that its relative paths are correct
// both in src/ and, bundled, in dist/.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isBundled } from './errors.ts';

/**
 * Returns the URL of a built file. Worker threads load the built files, even if the caller runs from src/. Throws
 * ERR_DATA_BUNDLED if the file does not exist, because a bundler has copied this code into a program.
 */
export function builtFile(name: string): URL {
  const url = new URL(`../dist/${name}`, import.meta.url);
  if (!existsSync(url)) throw isBundled(fileURLToPath(url));
  return url;
}
