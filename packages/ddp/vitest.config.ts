import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'ddp',
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
