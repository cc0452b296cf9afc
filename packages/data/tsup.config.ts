import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

export default defineConfig(
  library({
    index: 'src/index.ts',
    csv: 'src/csv.ts',
    idx: 'src/idx.ts',
    images: 'src/images.ts',
    jsonl: 'src/jsonl.ts',
    npy: 'src/npy.ts',
    parquet: 'src/parquet.ts',
    safetensors: 'src/safetensors.ts',
    synthetic: 'src/synthetic.ts',
    tar: 'src/tar.ts',
    tokens: 'src/tokens.ts',
    'worker-main': 'src/worker-main.ts',
  }),
);
