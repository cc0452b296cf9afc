// Tests how `npm test` treats test files that fail: it repeats up to three, each alone.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { root } from '../../run.mjs';

/** A folder with a configuration of vitest. It is within the repository because it needs vitest. */
let folder: string;
beforeEach(() => {
  mkdirSync(join(root, 'node_modules/.cache'), { recursive: true });
  folder = mkdtempSync(join(root, 'node_modules/.cache/vitest-'));
  write(
    'vitest.config.ts',
    `import { defineConfig } from 'vitest/config';
     export default defineConfig({ root: import.meta.dirname, test: { name: 'p', include: ['*.test.ts'] } });`,
  );
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text);
}

/** Writes a test file that notes each run in the file NAME.runs, and then does `statement`. */
function writeTest(name: string, statement: string): void {
  const runs = JSON.stringify(join(folder, `${name}.runs`));
  write(
    `${name}.test.ts`,
    `import { appendFileSync, readFileSync } from 'node:fs';
     import { expect, it } from 'vitest';
     it('runs', () => {
       appendFileSync(${runs}, '.');
       const runs = readFileSync(${runs}, 'utf8').length;
       ${statement}
     });`,
  );
}

const runsOf = (name: string): number => readFileSync(join(folder, `${name}.runs`), 'utf8').length;

function runAll() {
  const { VITEST: _, RINGWISE_SEED: _seed, ...env } = process.env;
  const script = `import { vitest } from ${JSON.stringify(join(root, 'scripts/vitest.mjs'))};
    process.exit(await vitest(['p'], [], { cwd: ${JSON.stringify(folder)} }));`;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    env: { ...env, NO_COLOR: '1' },
    encoding: 'utf8',
    timeout: 240_000,
  });
}

describe('a run of the tests', () => {
  it('passes if a file fails beside others and passes alone, and names the file at the end', () => {
    writeTest('unstable', 'expect(runs).toBe(2);');
    writeTest('stable', '');
    const { status, stdout, stderr } = runAll();
    expect(status).toBe(0);
    expect(stderr).toContain('expected 1 to be 2');
    expect(stdout.trim().split('\n').at(-1)).toMatch(/^unstable {2}.*unstable\.test\.ts \(p\)$/);
    expect([runsOf('unstable'), runsOf('stable')]).toEqual([2, 1]);
  });

  it('fails if a file fails twice', () => {
    writeTest('broken', 'expect(runs).toBe(0);');
    const { status, stdout } = runAll();
    expect(status).toBe(1);
    expect(stdout).not.toContain('unstable  ');
    expect(runsOf('broken')).toBe(2);
  });

  it('repeats a file with the seed that its error names', () => {
    writeTest(
      'random',
      "if (process.env.RINGWISE_SEED !== '7') throw new Error('differs (RINGWISE_SEED=7)');",
    );
    expect(runAll().status).toBe(0);
    expect(runsOf('random')).toBe(2);
  });

  it('repeats nothing if more than three files fail', () => {
    const names = ['a', 'b', 'c', 'd'];
    for (const name of names) writeTest(name, 'expect(runs).toBe(2);');
    expect(runAll().status).toBe(1);
    expect(names.map(runsOf)).toEqual([1, 1, 1, 1]);
  });

  it('repeats nothing if an error belongs to no test', () => {
    writeTest('stray', "setTimeout(() => { throw new Error('late'); }); expect(runs).toBe(2);");
    expect(runAll().status).toBe(1);
    expect(runsOf('stray')).toBe(1);
  });
});
