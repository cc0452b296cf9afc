// Where the files of this package lie. This module stays at the top of src/, so that it means the same from src/ and,
// bundled, from dist/.

/** The folder of the package's own code: src/, or dist/ once it is built. */
export const codeFolder = import.meta.dirname;
