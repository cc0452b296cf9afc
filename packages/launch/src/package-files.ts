// Paths of this package's files. This module stays directly in src/, so that its relative paths are correct
// both in src/ and, bundled, in dist/.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isBundled } from './errors.ts';

/** Returns the URL of a built file. Node.js can load only built files, even if the caller runs from src/. */
export const builtFile = (name: string): URL => new URL(`../dist/${name}`, import.meta.url);

/**
 * Returns the URL of a built file that a new thread or process runs. Throws ERR_LAUNCH_BUNDLED if the file does not
 * exist, because a bundler has copied this code into a program.
 */
export function entryFile(name: string): URL {
  const url = builtFile(name);
  if (!existsSync(url)) throw isBundled(fileURLToPath(url));
  return url;
}

/** The URL of this package's package.json. */
export const manifest = new URL('../package.json', import.meta.url);
