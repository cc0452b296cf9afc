// Tests the command that is printed for a failing test: it repeats that test alone.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { commandFor } from '../../../vitest.repeat.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** The configuration of a separate project. It is within the repository because it needs vitest and the reporter. */
const config = `import { defineConfig } from 'vitest/config';
export default defineConfig({
  root: import.meta.dirname,
  test: { name: 'p', include: ['*.test.ts'], reporters: [${JSON.stringify(join(root, 'vitest.repeat.ts'))}] },
});`;
const tests = `import { describe, expect, it } from 'vitest';
describe('a (b)', () => {
  it("isn't $1", () => expect('RINGWISE_SEED=42 differs').toBe(null));
  it('passes', () => {});
});`;

it('is printed for each test that fails, with the seed that its error names and the mode of the software device', () => {
  mkdirSync(join(root, 'node_modules/.cache'), { recursive: true });
  const folder = mkdtempSync(join(root, 'node_modules/.cache/repeat-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'vitest.config.ts'), config);
  writeFileSync(join(folder, 'x.test.ts'), tests);
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const { VITEST: _, ...own } = process.env;
  const env = { ...own, RINGWISE_SOFTWARE_GPU: 'async:7' };
  const runIn = (...args: string[]) =>
    spawnSync(process.execPath, [vitest, 'run', ...args], {
      cwd: folder,
      env,
      encoding: 'utf8',
      timeout: 240_000,
    });
  const { stderr, status } = runIn();
  const file = join(folder, 'x.test.ts').slice(root.length);
  const commands = stderr.split('\n').filter((line) => line.startsWith('To repeat: '));
  expect(commands).toEqual([
    `To repeat: RINGWISE_SOFTWARE_GPU=async:7 RINGWISE_SEED=42 npx vitest run --project p ${file} -t '^a \\(b\\) isn'\\''t \\$1$'`,
  ]);
  expect(status).toBe(1);
});

it('names the file alone where it could not be loaded', () => {
  expect(commandFor('data-unit', 'packages/data/test/unit/x.test.ts')).toBe(
    'npx vitest run --project data-unit packages/data/test/unit/x.test.ts',
  );
});
