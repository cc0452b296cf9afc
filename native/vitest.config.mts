import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'native',
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
