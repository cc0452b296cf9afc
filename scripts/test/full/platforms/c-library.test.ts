// Runs the C tests of libringwise.so, on up to four ranks, for platforms that need not be this machine's.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildFolder } from '../../../cross/build.mjs';
import { qemuArm64, whyNoArm64, whyNoQemu } from '../../../cross/emulators/arm64.mjs';
import { whyNoMusl } from '../../../cross/emulators/musl.mjs';
import { targets } from '../../../cross/targets.mjs';
import { findZig } from '../../../cross/zig.mjs';
import { root } from '../../support/clean-room.ts';

/** Not c_api_faults_test: its deadlines are shorter than an emulated rank may need to connect. */
const tests = ['c_api_test', 'c_api_verbs_test'];

interface Platform {
  readonly target: keyof typeof targets;
  readonly skipped: string | null;
  /** Command that runs a program of the platform. */
  readonly runner: () => readonly string[];
  /** The programs contain what the library is made of, because this machine has no loader for the library. */
  readonly isStatic?: boolean;
}

const platforms: readonly Platform[] = [
  { target: 'linux-arm64', skipped: whyNoArm64(), runner: () => qemuArm64({ withLibraries: true }) },
  { target: 'linuxmusl-x64', skipped: whyNoMusl(), runner: () => [] },
  { target: 'linuxmusl-arm64', skipped: whyNoQemu(), runner: () => qemuArm64(), isStatic: true },
];

function run(command: string, args: readonly string[], env = process.env): string {
  const options = { cwd: root, env, encoding: 'utf8' as const, timeout: 590_000, maxBuffer: 2 ** 28 };
  const { status, signal, stdout, stderr, error } = spawnSync(command, args, options);
  if (status === 0) return stdout;
  throw new Error(
    `${[command, ...args].join(' ')} ended with ${error?.message ?? status ?? signal}\n${stdout}${stderr}`,
  );
}

const objectsIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.o'))
    .map((name) => join(folder, name));

describe.each(platforms)('the C library for $target', ({ target, skipped, runner, isStatic = false }) => {
  const built = buildFolder(target);
  let folder = '';
  beforeAll(() => {
    if (skipped !== null) return;
    run(process.execPath, ['scripts/cross-build.mjs', target, '--family', 'capi']);
    folder = mkdtempSync(join(tmpdir(), `ringwise-c-${target}-`));
  }, 3_600_000);
  afterAll(() => folder !== '' && rmSync(folder, { recursive: true, force: true }));

  /** Compiles a test, and returns the path of the program. */
  function compile(test: string): string {
    const zig = findZig();
    const cache = join(built, 'zig/cache');
    const env = { ...process.env, ZIG_GLOBAL_CACHE_DIR: cache, ZIG_LOCAL_CACHE_DIR: cache };
    const object = join(folder, `${test}.o`);
    const place = `--target=${targets[target].zig}`;
    const sources = ['-std=c11', '-Inative/coll/include', '-c', `native/test/capi/${test}.c`];
    run(zig, ['cc', place, ...sources, '-o', object], env);
    const library = join(root, `native/npm/capi-${target}`);
    const parts = isStatic
      ? [
          '-static',
          ...objectsIn(join(built, 'CMakeFiles/ringwise.dir/capi')),
          join(built, 'libringwise_coll_core.a'),
        ]
      : [`-L${library}`, '-lringwise', `-Wl,-rpath,${library}`];
    run(zig, ['c++', place, object, ...parts, '-o', join(folder, test)], env);
    return join(folder, test);
  }

  it.skipIf(skipped !== null).each(tests)(
    `passes %s${skipped === null ? '' : ` (skipped: ${skipped})`}`,
    (test) => {
      const [command, ...args] = [...runner(), compile(test)];
      expect(run(command!, args)).toBe('passed\n');
    },
  );
});
