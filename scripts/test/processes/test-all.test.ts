import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { parts, selectionOf } from '../../parts.mjs';
import { root } from '../../run.mjs';

const script = fileURLToPath(new URL('../../test-all.mjs', import.meta.url));

function testAll(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    encoding: 'utf8',
    timeout: 240_000,
  });
  return { status, stdout, stderr };
}

it('--help lists every part', () => {
  const { status, stdout } = testAll('--help');
  expect(status).toBe(0);
  for (const [name, text] of Object.entries(parts))
    expect(stdout).toContain(`\n  ${name.padEnd(12)}${text}\n`);
});

it('every part selects tests of its own, and all parts together select every test', () => {
  const listed = (projects: string[], filters: string[]): string[] => {
    const chosen = projects.flatMap((project) => ['--project', project]);
    const argv = ['node_modules/vitest/vitest.mjs', 'list', '--filesOnly', ...chosen, ...filters];
    const { stdout } = spawnSync(process.execPath, argv, { cwd: root, encoding: 'utf8', timeout: 240_000 });
    return stdout.trim().split('\n');
  };
  const selected = Object.keys(parts).flatMap((name) => {
    const { projects, filters } = selectionOf(name);
    const files = listed(projects, filters);
    expect(files.length, name).toBeGreaterThan(0);
    expect(files[0], name).toMatch(/\.test\.ts$/);
    return files;
  });
  expect(selected.toSorted()).toEqual(listed(['*'], []).toSorted());
});

it.each([
  [['--part', 'nope'], /^test:all: there is no part "nope"; expected one of quick, /],
  [['--except', 'nope'], /^test:all: there is no part "nope"; expected one of quick, /],
  [['--minutes', 'x'], /^test:all: --minutes: expected a number > 0, got x\.$/m],
  [['--parts'], /^test:all: Unknown option '--parts'/],
])('%j is refused in a sentence, with exit code 2', (args, sentence) => {
  expect(testAll(...args)).toEqual({ status: 2, stdout: '', stderr: expect.stringMatching(sentence) });
});
