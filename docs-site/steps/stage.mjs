// Copies the repository's pages to the site, at the same relative places, so that links between pages stay as they are.
// A link to a file that is no page leads to the forge if package.json names the repository; otherwise only its text
// stays.
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { pagePaths, readPage } from '../../scripts/docs/pages.mjs';

/** Pages of the repository that are no documentation for users or contributors. */
const isLeftOut = (path) =>
  path.startsWith('docs-site/') || path.startsWith('native/npm/') || path.startsWith('.');

/** Returns the address of a file on the forge, or null if package.json names no repository. */
function forgeAddress(path) {
  const { repository } = JSON.parse(readFileSync('package.json', 'utf8'));
  const url = typeof repository === 'string' ? repository : repository?.url;
  return url ? `${url.replace(/^git\+/, '').replace(/\.git$/, '')}/blob/main/${path}` : null;
}

/** Returns `text` of the page `path` with its links to files that are no pages changed. */
export function withSiteLinks(path, text, pages) {
  let fence = null;
  const lines = text.split('\n').map((line) => {
    const marks = /^\s*(```+)/.exec(line)?.[1];
    if (fence !== null || marks) {
      fence = fence === null ? marks : marks === fence ? null : fence;
      return line;
    }
    return line.replace(/(!?)\[((?:[^\][]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (link, bang, label, target) => {
      if (/^([a-z]+:|#)/.test(target)) return link;
      const [file, anchor] = target.split('#', 2);
      const to = normalize(join(dirname(path), file)).replace(/\/$/, '');
      if (bang || pages.has(to)) return link;
      const readme = join(to, 'README.md');
      if (existsSync(to) && statSync(to).isDirectory() && pages.has(readme)) {
        const inner = label.replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1');
        return `[${inner}](${relative(dirname(path), readme)}${anchor ? `#${anchor}` : ''})`;
      }
      const address = forgeAddress(to);
      return address ? `[${label}](${address})` : label;
    });
  });
  return lines.join('\n');
}

/** Writes all pages and images below `folder`. Returns the paths of the pages in the repository. */
export function stagePages(folder) {
  const paths = pagePaths().filter((path) => existsSync(path) && !isLeftOut(path));
  const pages = new Set(paths);
  for (const path of paths) {
    const to = join(folder, path);
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, withSiteLinks(path, readPage(path), pages));
  }
  cpSync('docs/images', join(folder, 'docs/images'), { recursive: true });
  // The front matter of a page is YAML, of which JSON is a part.
  writeFileSync(join(folder, 'index.md'), `---\n${readFileSync('docs-site/home.json', 'utf8')}---\n`);
  return paths;
}
