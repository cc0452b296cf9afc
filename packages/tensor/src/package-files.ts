// The folder of this package's code. This module must stay at the top of src/, so that it also gives the right folder
// after bundling, from dist/.

/** The folder of the package's own code: src/, or dist/ once it is built. */
export const codeFolder = import.meta.dirname;
