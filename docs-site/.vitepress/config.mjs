// The site: which pages are where in the sidebar, search, anchors and code blocks. Pages come from docs-site/.pages,
// which docs-site/build.mjs writes.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformerTwoslash } from '@shikijs/vitepress-twoslash';
import { ModuleKind, ModuleResolutionKind, ScriptTarget } from 'typescript';
import { defineConfig } from 'vitepress';
import { anchorOf } from '../../scripts/docs/links.mjs';
import { parts } from './parts.mjs';
import { renderForSearch, searchOptions } from './search.mjs';

const titleOf = (path) => /^# (.*)$/m.exec(readFileSync(`docs-site/.pages/${path}`, 'utf8'))?.[1] ?? path;
const linkOf = (path) => `/${path.replace(/\.md$/, '')}`;
const itemOf = (page) => {
  const [path, text] = typeof page === 'string' ? [page, titleOf(page).replaceAll('`', '')] : page;
  return { text, link: linkOf(path) };
};

const modulesFile = 'docs-site/.pages/api/modules.json';
const modules = existsSync(modulesFile) ? JSON.parse(readFileSync(modulesFile, 'utf8')) : [];
// Groups that collapse would put a button into a button, which screen readers cannot press.
const guides = parts.map(({ text, pages }) => ({ text, items: pages.map(itemOf) }));
const api = { text: 'API', items: modules.map(({ name }) => ({ text: name, link: `/api/${name}/` })) };
const ring =
  '%3Csvg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"%3E%3Ccircle cx="4" cy="4" r="3" fill="none" stroke="%233451b2" stroke-width="1.5"/%3E%3C/svg%3E';

export default defineConfig({
  title: 'ringwise',
  description: 'Distributed training for Node.js',
  srcDir: '.pages',
  outDir: 'dist',
  cleanUrls: false,
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${ring}` }]],
  vite: {
    // Two chunks are larger than the default of 500 kB: the search index, which is loaded when the search opens, and
    // the page of Tensor with its 300 methods.
    build: { chunkSizeWarningLimit: 2_000 },
    resolve: {
      alias: [
        {
          find: /^.*\/VPHome\.vue$/,
          replacement: fileURLToPath(new URL('theme/home.mjs', import.meta.url)),
        },
      ],
    },
  },
  markdown: {
    anchor: { slugify: anchorOf },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    codeTransformers: [
      transformerTwoslash({
        explicitTrigger: true,
        twoslashOptions: {
          compilerOptions: {
            target: ScriptTarget.ES2023,
            lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
            module: ModuleKind.NodeNext,
            moduleResolution: ModuleResolutionKind.NodeNext,
            types: ['node'],
          },
        },
      }),
    ],
    languages: ['js', 'ts'],
  },
  themeConfig: {
    sidebar: {
      '/api/': [api],
      '/': [...guides, { text: 'API', items: [{ text: 'All packages', link: '/api/' }] }],
    },
    outline: [2, 3],
    nav: parts
      .filter(({ nav }) => nav)
      .map(({ nav, pages }) => ({ text: nav, link: itemOf(pages[0]).link }))
      .concat([{ text: 'API', link: '/api/', activeMatch: '^/api/' }]),
    search: {
      provider: 'local',
      options: {
        _render: renderForSearch,
        miniSearch: { searchOptions },
        // The name must contain the text that is seen: a word, and the key that the theme writes behind it.
        translations: { button: { buttonText: 'Search ', buttonAriaLabel: 'Search K' } },
      },
    },
  },
});
