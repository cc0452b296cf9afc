// Paths of this package's files. This module stays directly in src/, so that its relative paths are correct
// both in src/ and, bundled, in dist/.

/** Returns the URL of a built file. Worker threads load the built files, even if the caller runs from src/. */
export const builtFile = (name: string): URL => new URL(`../dist/${name}`, import.meta.url);
