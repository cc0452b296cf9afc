// Builds and runs the C++ unit tests without sanitizers. The programs are in the build folder of the addons;
// `npm run build:tests` compiles them.
import { it } from 'vitest';
import { run } from '../support/build.ts';

it('the C++ unit tests pass', { timeout: 900_000 }, () => {
  run('npm', ['run', '-s', 'build:tests']); // does nothing when nothing has changed
  run('ctest', ['--test-dir', 'build', '--output-on-failure', '--parallel', '2']);
});
