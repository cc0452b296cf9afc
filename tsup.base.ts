// How every package is built: ES modules with declarations, one file per entry, shared code in chunks.
import type { Options } from 'tsup';

/** `entry` maps the names of the built files to their sources. */
export function library(entry: Record<string, string>): Options {
  return {
    entry,
    format: ['esm'],
    target: 'node20',
    platform: 'node',
    // tsup passes baseUrl to the declaration build, which TypeScript 6 calls deprecated.
    dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
    sourcemap: true,
    clean: true,
    splitting: true,
  };
}
