import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

/** The live page is served from dist/ui, the chart library beside it: nothing comes from another host. */
const copyPage = async () => {
  mkdirSync('dist/ui', { recursive: true });
  for (const name of readdirSync('page')) copyFileSync(join('page', name), join('dist/ui', name));
  const uplot = join(createRequire(import.meta.url).resolve('uplot/package.json'), '..');
  copyFileSync(join(uplot, 'dist/uPlot.iife.min.js'), 'dist/ui/uplot.js');
  copyFileSync(join(uplot, 'dist/uPlot.min.css'), 'dist/ui/uplot.css');
  copyFileSync(join(uplot, 'LICENSE'), 'dist/ui/uplot.LICENSE');
};

export default defineConfig({
  ...library({
    index: 'src/index.ts',
    cli: 'src/cli/cli.ts',
    rank: 'src/agent/rank.ts',
    'spawn-entry': 'src/spawn/spawn-entry.ts',
    'thread-entry': 'src/spawn/thread-entry.ts',
  }),
  onSuccess: copyPage,
});
