// Where the files of this package lie. This module stays at the top of src/, so that its relative paths mean the same
// from src/ and, bundled, from dist/.

/** Returns the URL of a built file: node can load only those, also when the caller runs from src/. */
export const builtFile = (name: string): URL => new URL(`../dist/${name}`, import.meta.url);

/** The folder of the package's own code: src/, or dist/ once it is built. */
export const codeFolder = import.meta.dirname;
