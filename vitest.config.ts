import { defineConfig } from 'vitest/config';

// One file at a time: many tests start several processes, and small machines have two cores.
export default defineConfig({
  test: { projects: ['packages/*', 'examples', 'native', 'scripts'], fileParallelism: false, pool: 'forks' },
});
