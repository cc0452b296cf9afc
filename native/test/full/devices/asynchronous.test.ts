// Runs the C++ programs that use the software device in its asynchronous mode, if RINGWISE_SOFTWARE_GPU chooses it.
// Without it, these programs run among the other unit tests.
import { it } from 'vitest';
import { run } from '../../support/build.ts';

const isAsynchronous = Boolean(process.env.RINGWISE_SOFTWARE_GPU);

it.skipIf(!isAsynchronous)('the C++ tests of devices pass in asynchronous mode', { timeout: 900_000 }, () => {
  run('npm', ['run', '-s', 'build:tests']); // does nothing when nothing has changed
  const programs =
    '^(tensor_(cuda|streams|pinned|cublas|cudnn).*|nccl_(group|group_faults|graph)_test|device_lane_test)$';
  run('ctest', ['--test-dir', 'build', '--output-on-failure', '--parallel', '2', '-R', programs]);
});
