import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

export default defineConfig(
  library({
    index: 'src/index.ts',
    cli: 'src/cli.ts',
    rank: 'src/rank.ts',
    'spawn-entry': 'src/spawn-entry.ts',
    'thread-entry': 'src/thread-entry.ts',
  }),
);
