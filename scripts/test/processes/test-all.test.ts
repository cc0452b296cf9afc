import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { parts } from '../../parts.mjs';

const script = fileURLToPath(new URL('../../test-all.mjs', import.meta.url));

function testAll(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  return { status, stdout, stderr };
}

it('--help lists every part', () => {
  const { status, stdout } = testAll('--help');
  expect(status).toBe(0);
  for (const [name, text] of Object.entries(parts))
    expect(stdout).toContain(`\n  ${name.padEnd(12)}${text}\n`);
});

it.each([
  [['--part', 'nope'], /^test:all: there is no part "nope"; expected one of quick, /],
  [['--except', 'nope'], /^test:all: there is no part "nope"; expected one of quick, /],
  [['--parts'], /^test:all: Unknown option '--parts'/],
])('%j is refused in a sentence, with exit code 2', (args, sentence) => {
  expect(testAll(...args)).toEqual({ status: 2, stdout: '', stderr: expect.stringMatching(sentence) });
});
