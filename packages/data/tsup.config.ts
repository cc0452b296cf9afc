import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

export default defineConfig(
  library({
    index: 'src/index.ts',
    csv: 'src/formats/csv/index.ts',
    idx: 'src/formats/idx/index.ts',
    images: 'src/formats/images/index.ts',
    jsonl: 'src/formats/json/index.ts',
    npy: 'src/formats/npy/index.ts',
    parquet: 'src/formats/parquet/index.ts',
    safetensors: 'src/formats/safetensors/index.ts',
    synthetic: 'src/datasets/synthetic.ts',
    tar: 'src/formats/tar/index.ts',
    tokens: 'src/formats/tokens/index.ts',
    'worker-main': 'src/loader/worker-main.ts',
  }),
);
