// Finds links and anchors of pages that lead nowhere. Addresses of other hosts are not fetched.
import { existsSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { readPage, withoutBlocks } from './pages.mjs';

/** Returns the anchor of a heading: lower case, without punctuation, spaces become hyphens, as forges do it. */
export const anchorOf = (heading) =>
  heading
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, '')
    .replace(/\s/g, '-');

/** Returns the anchors of a page. A heading that comes again gets -1, -2 and so on. */
export function anchorsOf(text) {
  const seen = new Map();
  return new Set(
    [...withoutBlocks(text).matchAll(/^#{1,6} +(.*?)#* *$/gm)].map(([, heading]) => {
      const anchor = anchorOf(heading);
      const times = seen.get(anchor) ?? 0;
      seen.set(anchor, times + 1);
      return times === 0 ? anchor : `${anchor}-${times}`;
    }),
  );
}

const link = /\]\(([^)\s]+)\)|\b(?:src|srcset)="([^"\s]+)"/g;

/** Returns the links of a page, also to pictures in HTML: target and line. Code is left out. */
export const linksOf = (text) =>
  withoutBlocks(text)
    .split('\n')
    .flatMap((line, index) =>
      [...line.replace(/`[^`]*`/g, (code) => ' '.repeat(code.length)).matchAll(link)].map(
        ([, target, picture]) => ({ target: target ?? picture, line: index + 1 }),
      ),
    );

/** Returns the faults of the links of `path`, one line each. `text` is the page. */
export function linkFaults(path, text) {
  return linksOf(text).flatMap(({ target, line }) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [file, anchor] = target.split('#', 2);
    const to = file === '' ? path : normalize(join(dirname(path), decodeURI(file)));
    if (file !== '' && !existsSync(to)) return [`${path}:${line} links to ${target}, but there is no ${to}`];
    if (anchor === undefined || anchor === '') return [];
    if (file !== '' && (!to.endsWith('.md') || statSync(to).isDirectory())) return [];
    const anchors = anchorsOf(file === '' ? text : readPage(to));
    return anchors.has(anchor)
      ? []
      : [`${path}:${line} links to ${target}, but ${to} has no heading #${anchor}`];
  });
}
