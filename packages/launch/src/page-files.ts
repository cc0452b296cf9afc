// The files of the live page, as the build puts them together: a fixed list, so that no request names a file.

import { readFileSync } from 'node:fs';

export interface PageFile {
  readonly type: string;
  readonly content: Buffer;
}

/** Resolves to the same folder from src/ and from dist/. */
const folder = new URL('../dist/ui/', import.meta.url);

const types = { html: 'text/html', css: 'text/css', js: 'text/javascript' } as const;

const names = [
  'index.html',
  'style.css',
  'page.js',
  'curves.js',
  'ranks.js',
  'timeline.js',
  'log.js',
  'uplot.js',
  'uplot.css',
] as const;

/** By the last part of their address; the page itself has the empty one. */
export function pageFiles(): ReadonlyMap<string, PageFile> {
  return new Map(
    names.map((name) => {
      const type = types[name.split('.')[1] as keyof typeof types];
      const content = readFileSync(new URL(name, folder));
      return [name === 'index.html' ? '' : name, { type: `${type}; charset=utf-8`, content }];
    }),
  );
}
