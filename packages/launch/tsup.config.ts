import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build } from 'esbuild';
import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

/**
 * Bundles the live page into dist/ui, with the chart library and its licence: nothing comes from another host, and a
 * report is these three files in one.
 */
const bundlePage = async () => {
  mkdirSync('dist/ui', { recursive: true });
  const uplot = join(createRequire(import.meta.url).resolve('uplot/package.json'), '..');
  const licence = `/*! uPlot\n${readFileSync(join(uplot, 'LICENSE'), 'utf8')}*/`;
  copyFileSync('page/index.html', 'dist/ui/index.html');
  const parts = ['colors', 'layout', 'parts', 'curves', 'ranks', 'phone'];
  const styles = [join(uplot, 'dist/uPlot.min.css'), ...parts.map((part) => `page/style/${part}.css`)];
  writeFileSync('dist/ui/style.css', styles.map((file) => readFileSync(file, 'utf8')).join('\n'));
  await build({
    entryPoints: ['page/page.js'],
    outfile: 'dist/ui/page.js',
    bundle: true,
    minify: true,
    format: 'iife',
    target: 'es2022',
    banner: { js: licence },
  });
};

export default defineConfig(
  library(
    {
      index: 'src/index.ts',
      cli: 'src/cli/cli.ts',
      rank: 'src/agent/rank.ts',
      'spawn-entry': 'src/spawn/spawn-entry.ts',
      'thread-entry': 'src/spawn/thread-entry.ts',
    },
    { built: bundlePage },
  ),
);
