// Defines how every package is built: ES modules, one file per entry, shared code in chunks. Programs need only these
// files; `tsup --dts-only` adds the type declarations, which would take most of the time of a build.
import type { Options } from 'tsup';

/** Returns tsup's options for a package. `entry` maps the names of the built files to their sources. */
export function library(entry: Record<string, string>): Options {
  return {
    entry,
    format: ['esm'],
    target: 'node20',
    platform: 'node',
    sourcemap: true,
    esbuildOptions: (options) => {
      // Maps name the lines of src/; its text would be more than half of each published package.
      options.sourcesContent = false;
    },
    clean: ['!**/*.d.ts'],
    splitting: true,
  };
}
