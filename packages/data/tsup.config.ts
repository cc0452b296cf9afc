import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

export default defineConfig(
  library({
    index: 'src/index.ts',
    idx: 'src/idx.ts',
    jsonl: 'src/jsonl.ts',
    npy: 'src/npy.ts',
    synthetic: 'src/synthetic.ts',
    tokens: 'src/tokens.ts',
    'worker-main': 'src/worker-main.ts',
  }),
);
