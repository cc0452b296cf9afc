// Paths of this package's files. This module stays directly in src/, so that its relative paths are correct
// both in src/ and, bundled, in dist/.

/** Returns the URL of a built file. Node.js can load only built files, even if the caller runs from src/. */
export const builtFile = (name: string): URL => new URL(`../dist/${name}`, import.meta.url);
