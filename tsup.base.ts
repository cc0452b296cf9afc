// Defines how every package is built: ES modules, one file per entry, shared code in chunks. Programs need only these
// files; `tsup --dts-only` adds the type declarations, which would take most of the time of a build.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decode, encode, type SourceMapSegment } from '@jridgewell/sourcemap-codec';
import type { Options } from 'tsup';

export interface LibraryOptions {
  /** Runs when the files are written. */
  readonly built?: () => Promise<void>;
  /**
   * The source of an entry whose modules all go into one file, which every other entry then loads. Without it, esbuild
   * makes a file for each set of entries that share modules, and an import of many files takes longer than of one.
   */
  readonly core?: string;
}

/** Returns tsup's options for a package. `entry` maps the names of the built files to their sources. */
export function library(entry: Record<string, string>, { built, core }: LibraryOptions = {}): Options {
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
    // Makes each module import the core. So all entries share all of its modules.
    ...(core !== undefined && { inject: [core] }),
    onSuccess: async () => {
      nameClasses('dist');
      thinMaps('dist');
      await built?.();
    },
  };
}

/**
 * Gives the classes in a folder back the names that they have in src/. esbuild writes `var Group = class _Group` for
 * classes that use their own name; console.log(), stack traces and error messages would show _Group.
 */
function nameClasses(folder: string): void {
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.js')) continue;
    const path = join(folder, file);
    const before = readFileSync(path, 'utf8');
    const classes = before.matchAll(/^(?:var|let|const) (\w+) = class _\1\b/gm);
    let text = before;
    for (const [, name] of classes) text = text.replace(new RegExp(`(?<![.#\\w$])_${name}\\b`, 'g'), name!);
    if (text !== before) writeFileSync(path, text);
  }
}

/**
 * Makes the source maps in a folder name lines only: of each line of the built file, keeps the places at which another
 * line of a source begins. Maps with columns and names are four times as large; all maps of tensor would be 0.8 MB.
 */
function thinMaps(folder: string): void {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.js.map')) continue;
    const path = join(folder, name);
    const map = JSON.parse(readFileSync(path, 'utf8')) as { mappings: string };
    const lines = decode(map.mappings).map((segments) => {
      let before = '';
      return segments.flatMap((segment): SourceMapSegment[] => {
        const [column, source, line, sourceColumn] = segment;
        const place = `${source}:${line}`;
        if (source === undefined || line === undefined || sourceColumn === undefined) return [];
        if (place === before) return [];
        before = place;
        return [[column, source, line, sourceColumn]];
      });
    });
    writeFileSync(path, JSON.stringify({ ...map, names: [], mappings: encode(lines) }));
  }
}
