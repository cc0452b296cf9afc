// How tests run. A test lies in the folder that says what it needs:
//   test/unit       starts no process: as many files at once as there are cores
//   test/processes  starts processes, which wait for each other most of the time: two files at once, or half as many as
//                   there are cores
//   test/full       takes long or needs more than a compiler: one file at a time, and only in `npm run test:all`, of
//                   which the folder inside it is a part (scripts/test-all.mjs)
// Each kind of a package is a project of vitest: collectives-unit, collectives-processes, collectives-full.
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type TestProjectInlineConfiguration, type ViteUserConfig } from 'vitest/config';

export const root = fileURLToPath(new URL('.', import.meta.url));

const kinds = ['unit', 'processes', 'full'] as const;

/** Files of a kind that run at once. */
const workers = {
  unit: availableParallelism(),
  processes: Math.max(2, Math.floor(availableParallelism() / 2)),
  full: 1,
};

/** Longest time that one test of these folders may take, in ms; a test can set another. */
const timeoutsMs: Readonly<Record<string, number>> = { examples: 120_000, scripts: 300_000 };

/** Returns the projects of one package: one for each kind of tests that it has. */
function projectsOf(folder: string): TestProjectInlineConfiguration[] {
  const name = basename(folder);
  const timeoutMs = timeoutsMs[name] ?? 30_000;
  const present = kinds.filter((kind) => existsSync(join(folder, 'test', kind)));
  return present.map((kind) => ({
    root: folder,
    test: {
      name: `${name}-${kind}`,
      include: [`test/${kind}/**/*.test.ts`],
      pool: 'forks',
      maxWorkers: workers[kind],
      fileParallelism: workers[kind] > 1,
      // Kinds run one after the other, so that nothing else takes the cores of tests that start processes.
      sequence: { groupOrder: kinds.indexOf(kind) },
      testTimeout: timeoutMs,
      hookTimeout: timeoutMs,
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
