// Builds and runs the C++ unit tests: plain, with the address and undefined-behaviour sanitizers, and with the
// thread sanitizer. Each has its own build folder, so that a second run compiles only what changed.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, it } from 'vitest';

const native = fileURLToPath(new URL('../..', import.meta.url));

function buildAndRun(folder: string, sanitize: string): void {
  const run = (command: string, args: string[]) => {
    try {
      execFileSync(command, args, { cwd: native, stdio: 'pipe', encoding: 'utf8' });
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string };
      throw new Error(`${command} ${args.join(' ')} failed\n${stdout}\n${stderr}`);
    }
  };
  const cuda = sanitize === 'thread' ? 'OFF' : 'AUTO';
  // The kernels are compiled for all devices with the addon; here they run on the software GPU, which has no
  // code of its own.
  const options = ['-DRINGWISE_TESTS=ON', '-DRINGWISE_CUDA_ARCHITECTURES=80'];
  options.push(`-DRINGWISE_SANITIZE=${sanitize}`, `-DRINGWISE_CUDA=${cuda}`);
  run('cmake', ['-S', '.', '-B', folder, ...options]);
  run('cmake', ['--build', folder, '--parallel', '2']);
  run('ctest', ['--test-dir', folder, '--output-on-failure']);
}

describe('the C++ unit tests pass', () => {
  it('as released', () => buildAndRun('build-tests', ''));
  it('with the address and undefined-behaviour sanitizers', () =>
    buildAndRun('build-asan', 'address,undefined'));
  it('with the thread sanitizer', () => buildAndRun('build-tsan', 'thread'));
});
