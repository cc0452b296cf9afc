// The files of the live page, which the build bundles. A fixed list, so that requests cannot name files.

import { readFileSync } from 'node:fs';
import { builtFile } from '../package-files.ts';

export interface PageFile {
  readonly type: string;
  readonly content: Buffer;
}

const folder = builtFile('ui/');

const types = { html: 'text/html', css: 'text/css', js: 'text/javascript' } as const;

const names = ['index.html', 'style.css', 'page.js'] as const;

/** Returns the files by the last part of their URL, which is empty for the page itself. */
export function pageFiles(): ReadonlyMap<string, PageFile> {
  return new Map(
    names.map((name) => {
      const type = types[name.split('.')[1] as keyof typeof types];
      const content = readFileSync(new URL(name, folder));
      return [name === 'index.html' ? '' : name, { type: `${type}; charset=utf-8`, content }];
    }),
  );
}
