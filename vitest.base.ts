// How every package's tests run: one file at a time, in a process of its own, because many start several processes.
import { defineConfig, type ViteUserConfig } from 'vitest/config';

export function project(name: string, timeoutMs = 30_000): ViteUserConfig {
  return defineConfig({
    test: {
      name,
      include: ['test/**/*.test.ts'],
      pool: 'forks',
      fileParallelism: false,
      testTimeout: timeoutMs,
      hookTimeout: timeoutMs,
    },
  });
}
