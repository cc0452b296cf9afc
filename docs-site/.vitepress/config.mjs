// The site: which pages are where in the sidebar, search, anchors and code blocks. Pages come from docs-site/.pages,
// which docs-site/build.mjs writes.
import { existsSync, readFileSync } from 'node:fs';
import { transformerTwoslash } from '@shikijs/vitepress-twoslash';
import { ModuleKind, ModuleResolutionKind, ScriptTarget } from 'typescript';
import { defineConfig } from 'vitepress';
import { anchorOf } from '../../scripts/docs/links.mjs';
import { parts } from './parts.mjs';
import { searchOptions } from './search.mjs';

const titleOf = (path) => /^# (.*)$/m.exec(readFileSync(`docs-site/.pages/${path}`, 'utf8'))?.[1] ?? path;
const linkOf = (path) => `/${path.replace(/\.md$/, '')}`;
const itemOf = (page) => {
  const [path, text] = typeof page === 'string' ? [page, titleOf(page).replaceAll('`', '')] : page;
  return { text, link: linkOf(path) };
};

const modulesFile = 'docs-site/.pages/api/modules.json';
const modules = existsSync(modulesFile) ? JSON.parse(readFileSync(modulesFile, 'utf8')) : [];
const guides = [
  ...parts.map(({ text, pages }) => ({ text, collapsed: false, items: pages.map(itemOf) })),
  { text: 'API', collapsed: true, items: modules.map(({ name }) => ({ text: name, link: `/api/${name}/` })) },
];

export default defineConfig({
  title: 'ringwise',
  description: 'Distributed training for Node.js',
  srcDir: '.pages',
  outDir: 'dist',
  cleanUrls: false,
  markdown: {
    anchor: { slugify: anchorOf },
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
    sidebar: guides,
    outline: [2, 3],
    nav: parts
      .filter(({ nav }) => nav)
      .map(({ nav, pages }) => ({ text: nav, link: itemOf(pages[0]).link }))
      .concat([{ text: 'API', link: '/api/' }]),
    search: {
      provider: 'local',
      options: { miniSearch: { searchOptions } },
    },
  },
});
