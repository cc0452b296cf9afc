// Builds the documentation site into docs-site/dist: copies the pages of the repository beside each other, writes the
// API reference from the built declarations of the packages, runs the blocks that are marked as runnable, and lets
// VitePress make the site, which fails on dead links and on `ts twoslash` blocks that do not compile.
// Run it by `npm run docs` at the root of the repository.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { chdir } from 'node:process';
import { fileURLToPath } from 'node:url';
import { writeApi } from './steps/api.mjs';
import { askQuestions } from './steps/questions.mjs';
import { runBlocks } from './steps/runnable.mjs';
import { stagePages } from './steps/stage.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const vitepress = fileURLToPath(new URL('node_modules/vitepress/bin/vitepress.js', import.meta.url));
const pages = 'docs-site/.pages';

chdir(root);
rmSync(pages, { recursive: true, force: true });
const staged = stagePages(pages);
console.log(`docs: ${staged.length} pages`);
console.log(`docs: ${await writeApi(`${pages}/api`)} modules of the API`);
console.log(`docs: ${runBlocks(staged)} runnable blocks ran`);
// From the root, so that code blocks find the packages in its node_modules.
const { status } = spawnSync(process.execPath, [vitepress, 'build', 'docs-site'], { stdio: 'inherit' });
process.exitCode = status ?? 1;
if (status === 0) {
  const { asked, answered } = await askQuestions(resolve('docs-site/dist'));
  console.log(`docs: the search answers ${answered} of ${asked} questions`);
  console.log('docs: the site is in docs-site/dist; see it: npx vitepress preview docs-site');
}
