// Defines how tests run. The folder of a test says what it needs:
//   test/unit       starts no process. As many files run at once as there are cores, and files share processes.
//   test/isolated   starts no process, but changes its own for good: it sets the environment or opens another driver.
//                   Each file has a process of its own.
//   test/processes  starts processes, which wait for each other most of the time. Half as many files run at once as
//                   there are cores, at least three.
//   test/full       takes long or needs more than a compiler. One file runs at a time, and only in `npm run test:all`;
//                   each folder inside it is one of its parts (scripts/parts.mjs).
// Each of these folders of a package is a project of vitest: collectives-unit, collectives-processes,
// collectives-full.
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type TestProjectInlineConfiguration, type ViteUserConfig } from 'vitest/config';

export const root = fileURLToPath(new URL('.', import.meta.url));

const kinds = ['unit', 'isolated', 'processes', 'full'] as const;

/** Number of test files of a kind that run at once. */
const workers = {
  unit: availableParallelism(),
  isolated: availableParallelism(),
  processes: Math.max(3, Math.floor(availableParallelism() / 2)),
  full: 1,
};

/**
 * Longest time that one test may take, in ms: far above what a test needs, because it only ends one that hangs. On a
 * busy machine a process may need ten seconds to start. The ranks of a test end before, so that it can say what they
 * did.
 */
const limitMs = 300_000;
/** How long expect.poll() tries, in ms. */
const pollMs = 60_000;

/** Returns the vitest projects of one package: one for each kind of test that it has. */
function projectsOf(folder: string): TestProjectInlineConfiguration[] {
  const name = basename(folder);
  const present = kinds.filter((kind) => existsSync(join(folder, 'test', kind)));
  // Tests of published packages run package managers.
  const timeoutMs = (kind: string) => (kind === 'full' ? 2 * limitMs : limitMs);
  return present.map((kind) => ({
    root: folder,
    test: {
      name: `${name}-${kind}`,
      include: [`test/${kind}/**/*.test.ts`],
      pool: 'forks',
      isolate: kind !== 'unit',
      maxWorkers: workers[kind],
      fileParallelism: workers[kind] > 1,
      // Kinds run one after the other, so that unit tests do not take the cores from tests that start processes.
      sequence: { groupOrder: kinds.indexOf(kind) },
      testTimeout: timeoutMs(kind),
      hookTimeout: timeoutMs(kind),
      expect: { poll: { timeout: pollMs } },
      // Only package managers, in `full`, connect to other machines. With this variable each Node.js process reads the
      // certificates in a file at its start, which takes longer than the rest of the start.
      ...(kind !== 'full' && { env: { NODE_EXTRA_CA_CERTS: '' } }),
    },
  }));
}

/** Returns the configuration for the tests in these folders, given from the root of the repository. */
export function testsOf(...folders: readonly string[]): ViteUserConfig {
  const reporters = ['default', join(root, 'vitest.repeat.ts')];
  return defineConfig({
    test: { projects: folders.flatMap((folder) => projectsOf(join(root, folder))), reporters },
  });
}
