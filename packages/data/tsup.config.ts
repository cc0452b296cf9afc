import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

export default defineConfig(
  library({
    index: 'src/index.ts',
    idx: 'src/idx.ts',
    synthetic: 'src/synthetic.ts',
    'worker-main': 'src/worker-main.ts',
  }),
);
