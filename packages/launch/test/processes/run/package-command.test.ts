// Tests commands that other packages add to `ringwise`. The installation lies in a temporary folder, from which no
// package of this workspace can be resolved.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const launch = fileURLToPath(new URL('../../..', import.meta.url));
let tools: string;
let project: string;

beforeEach(() => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'ringwise-package-command-')));
  tools = join(folder, 'tools');
  project = join(folder, 'project');
  const installed = join(tools, 'node_modules/@ringwise/launch');
  for (const name of ['bin', 'dist', 'package.json']) {
    cpSync(join(launch, name), join(installed, name), { recursive: true });
  }
  const store = realpathSync(join(launch, 'node_modules/@ringwise/store'));
  symlinkSync(store, join(tools, 'node_modules/@ringwise/store'));
  mkdirSync(project);
});

afterEach(() => rmSync(dirname(tools), { recursive: true }));

/** Installs a package with a bench command that runs the package's own script on the ranks. */
function installBench(where: string, says: string): void {
  const folder = join(where, 'node_modules/@ringwise/collectives');
  mkdirSync(folder, { recursive: true });
  const exports = { './bench': { types: './bench.d.ts', default: './bench.js' } };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', exports }));
  writeFileSync(
    join(folder, 'bench.js'),
    `import { fileURLToPath } from 'node:url';
     export const command = (argv, { runRanks }) =>
       runRanks(argv[0], fileURLToPath(new URL('./rank.js', import.meta.url)), argv.slice(1));`,
  );
  writeFileSync(
    join(folder, 'rank.js'),
    `console.log(${JSON.stringify(says)}, process.env.RANK, process.argv.slice(2).join());
     if (process.argv[2] === 'fail' && process.env.RANK === '1') throw new Error('a rank gave up');`,
  );
}

function ringwise(...args: string[]) {
  const bin = join(tools, 'node_modules/@ringwise/launch/bin/ringwise.js');
  const { NODE_PATH: _ofThisWorkspace, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], {
    cwd: project,
    env,
    encoding: 'utf8',
    timeout: 120_000,
  });
  return { status, lines: stdout.split('\n').filter(Boolean).sort(), stderr };
}

describe('ringwise bench', () => {
  it('says which package it needs', () => {
    expect(ringwise('bench', 'all-reduce')).toEqual({
      status: 1,
      lines: [],
      stderr:
        'ringwise bench: this command belongs to @ringwise/collectives, which is not installed here or is too old. ' +
        'Run: npm install @ringwise/collectives\n',
    });
  });

  it('runs the package that is installed beside the launcher; the ranks print unmarked lines', () => {
    installBench(tools, 'beside');
    const { status, lines, stderr } = ringwise('bench', '2', 'a', '--b');
    expect({ status, lines, stderr }).toEqual({
      status: 0,
      lines: ['beside 0 a,--b', 'beside 1 a,--b'],
      stderr: '',
    });
  });

  it("prefers the project's own", () => {
    installBench(tools, 'beside');
    installBench(project, 'own');
    expect(ringwise('bench', '1').lines).toEqual(['own 0 ']);
  });

  it('explains the failure of a rank, and a wrong number of ranks', () => {
    installBench(project, 'own');
    const { status, stderr } = ringwise('bench', '2', 'fail');
    expect(stderr).toMatch(/\nringwise: rank 1 of 2 failed \(exit code 1\).*\n {2}Error: a rank gave up/);
    expect(status).toBe(1);
    const wrong = ringwise('bench', 'many');
    expect(wrong.stderr).toMatch(/^ringwise bench: --nproc-per-node expects a whole number/);
    expect(wrong.status).toBe(2);
  });
});

it('ringwise doctor does without the packages, and says what they bring', () => {
  const { status, lines } = ringwise('doctor');
  expect(lines.filter((line) => line.startsWith('note   @ringwise/'))).toEqual([
    expect.stringMatching(
      /collectives +not installed here, or too old; .*: npm install @ringwise\/collectives$/,
    ),
    expect.stringMatching(/tensor +not installed here, or too old; .*: npm install @ringwise\/tensor$/),
  ]);
  expect(lines).toContain('Nothing is wrong.');
  expect(status).toBe(0);
});
