import { defineConfig } from 'tsup';

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    'nn/index': 'src/nn/index.ts',
    'optim/index': 'src/optim/index.ts',
    'safetensors/index': 'src/safetensors/index.ts',
  },
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  // tsup passes baseUrl to the declaration build, which TypeScript 6 calls deprecated.
  dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
  sourcemap: true,
  clean: true,
  splitting: true,
});
