import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

export default defineConfig(
  library({
    index: 'src/index.ts',
    testing: 'src/testing.ts',
    'server-worker': 'src/server/server-worker.ts',
  }),
);
