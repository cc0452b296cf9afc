// How every package is built: ES modules, one file per entry, shared code in chunks. Programs run with these alone;
// `tsup --dts-only` adds the declarations, which take most of the time that a build of both would.
import type { Options } from 'tsup';

/** `entry` maps the names of the built files to their sources. */
export function library(entry: Record<string, string>): Options {
  return {
    entry,
    format: ['esm'],
    target: 'node20',
    platform: 'node',
    sourcemap: true,
    clean: ['!**/*.d.ts'],
    splitting: true,
  };
}
