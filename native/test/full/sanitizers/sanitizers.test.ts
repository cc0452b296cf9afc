// Builds and runs the C++ unit tests with sanitizers. Each set of sanitizers has its own build folder, so
// that a second run compiles only what changed.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, it } from 'vitest';
import { run } from '../../support/build.ts';

const hasNinja = spawnSync('ninja', ['--version']).status === 0;

function buildAndRun(folder: string, sanitize: string): void {
  // CMake refuses to change the generator of an existing build folder.
  const isNew = !existsSync(new URL(`../../../${folder}/CMakeCache.txt`, import.meta.url));
  const generator = hasNinja && isNew ? ['-G', 'Ninja'] : [];
  // Sanitizers check only code that runs on the CPU. The CUDA kernels run on the software device, so no
  // images of them are needed.
  const env = { ...process.env, RINGWISE_CUDA: 'OFF' };
  const options = ['-DRINGWISE_TESTS=ON', `-DRINGWISE_SANITIZE=${sanitize}`];
  run('cmake', ['-S', '.', '-B', folder, ...generator, ...options], env);
  run('cmake', ['--build', folder, '--parallel', '2'], env);
  run('ctest', ['--test-dir', folder, '--output-on-failure', '--parallel', '2'], env);
}

describe('the C++ unit tests pass', { timeout: 1_800_000 }, () => {
  it('with the address and undefined-behaviour sanitizers', () =>
    buildAndRun('build-asan', 'address,undefined'));
  it('with the thread sanitizer', () => buildAndRun('build-tsan', 'thread'));
});
