// Runs on Linux what the collectives do on macOS: a build with the files of native/base/os that macOS uses, and a
// kqueue if libkqueue is there.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Pools } from '@ringwise/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../../../packages/collectives/contract/index.ts';
import { hostRanks } from '../../../../packages/collectives/test/support/pool.ts';
import { headers, native } from '../../../cross/build.mjs';

const folder = join(native, 'build-portable');
const prefixes = [...(process.env.CMAKE_PREFIX_PATH?.split(':') ?? []), '/usr', '/usr/local'];
const hasKqueue = prefixes.some((prefix) => existsSync(join(prefix, 'include/kqueue/sys/event.h')));
/** The C++ tests of what depends on the system. */
const programs = [
  ...['poller', 'local_socket', 'memory_file', 'os', 'crash_words', 'board', 'failure_protocol', 'p2p'],
  ...['flight_recorder', 'host_group', 'host_group_faults', 'progress_engine', 'run_ahead', 'verbs'],
].map((name) => `${name}_test`);

function run(command: string, ...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${error ?? stdout + stderr}`);
  return stdout;
}

describe.runIf(process.platform === 'linux')(
  `what macOS does, on Linux, ${hasKqueue ? 'with a kqueue' : 'with epoll (no libkqueue)'}`,
  () => {
    beforeAll(() => {
      const options = ['-DRINGWISE_PORTABLE=ON', '-DRINGWISE_CUDA=OFF', '-DRINGWISE_MPICC=none'];
      const output = run(
        ...(['cmake', '-S', native, '-B', folder, ...options] as const),
        `-DCMAKE_JS_INC=${headers().join(';')}`,
        `-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${join(folder, 'Release')}`,
      );
      expect(/portable parts of base.os, kqueue \S/.test(output)).toBe(hasKqueue);
      run('cmake', '--build', folder, '--parallel', '2', '--target', 'ringwise_coll', ...programs);
    }, 3_600_000);

    it('passes the C++ tests', { timeout: 600_000 }, () => {
      run('ctest', '--test-dir', folder, '--output-on-failure', '-R', `^(${programs.join('|')})$`);
    });

    const inherited = process.env.RINGWISE_NATIVE_PATH;
    const start = hostRanks();
    const pools = new Pools((size, port) => {
      process.env.RINGWISE_NATIVE_PATH = join(folder, 'Release');
      return start(size, port);
    }, 120_000);
    backendContract({ describe, it, expect }, 'host', { run: pools.run, sizes: [2] });
    afterAll(async () => {
      await pools.end();
      if (inherited === undefined) delete process.env.RINGWISE_NATIVE_PATH;
      else process.env.RINGWISE_NATIVE_PATH = inherited;
    });
  },
);
