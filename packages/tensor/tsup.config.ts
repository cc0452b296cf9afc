import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

export default defineConfig(
  library({
    index: 'src/index.ts',
    doctor: 'src/doctor.ts',
    'nn/index': 'src/nn/index.ts',
    'npy/index': 'src/files/npy/index.ts',
    'optim/index': 'src/optim/index.ts',
    'safetensors/index': 'src/files/safetensors/index.ts',
  }),
);
