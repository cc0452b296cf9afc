import { readdirSync } from 'node:fs';
import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

/** The files of src, each of which is an entry, without their endings. */
const entries = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => path.replaceAll('\\', '/').replace(/\.ts$/, ''));

export default defineConfig(library(Object.fromEntries(entries.map((path) => [path, `src/${path}.ts`]))));
