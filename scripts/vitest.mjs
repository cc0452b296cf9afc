// Runs vitest, and repeats the test files that failed once, each alone.
//
// The tests start thousands of processes that wait for each other, beside other tests that do the same. On a small or
// busy machine one of them may get no processor for seconds. A file that fails beside others and passes alone does not
// fail the run, but it is named at the end: either the test or the code under it depends on time, which is a bug. Tests
// of random programs get the seed of the failure again.
import { relative } from 'node:path';
import { root, runWith } from './run.mjs';

/** Most files that are repeated. If more fail, the cause is not time. */
const mostRepeated = 3;

const program = `${root}node_modules/vitest/vitest.mjs`;
const reporters = ['default', `${root}vitest.repeat.ts`, `${root}scripts/failed-files.mjs`];

/**
 * Runs vitest on `projects`, names that may have wildcards. If there are filters, runs only the test files whose paths
 * contain one of them. `env` is added to the environment; `cwd` is the folder of vitest's configuration. Resolves with
 * the exit code: 0 if each file passed at its first run or when it was repeated.
 */
export async function vitest(projects, filters = [], { env = {}, cwd = root } = {}) {
  let failed = { files: [], unhandledErrors: 0 };
  const start = (options, ...args) => runWith({ cwd, ...options }, process.execPath, program, 'run', ...args);
  const code = await start(
    { env, onMessage: (message) => (failed = message) },
    ...projects.flatMap((project) => ['--project', project]),
    ...reporters.flatMap((reporter) => ['--reporter', reporter]),
    ...filters,
  );
  const { files, unhandledErrors } = failed;
  if (code === 0 || unhandledErrors > 0 || files.length === 0 || files.length > mostRepeated) return code;
  for (const { project, path, seed } of files) {
    console.log(`\n== repeats ${nameOf(path)} (${project}) alone, because it failed`);
    const seeded = seed === undefined ? env : { ...env, RINGWISE_SEED: seed };
    const again = await start({ env: seeded }, '--project', project, path);
    if (again !== 0) return again;
  }
  console.log('\nThese files failed beside other tests, and passed alone. Mend what makes the difference:');
  for (const { project, path } of files) console.log(`unstable  ${nameOf(path)} (${project})`);
  return 0;
}

const nameOf = (path) => relative(root, path);
