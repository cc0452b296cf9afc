// Tests that native kernels work if Node.js may not make code from strings.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('a process that refuses code from strings computes with native kernels', () => {
  const source = JSON.stringify(new URL('../../src/index.ts', import.meta.url).href);
  const script = `
    const { tensor, kernelsName } = await import(${source});
    console.log(JSON.stringify([kernelsName(), (await tensor([1, 2, 3]).cumsum(0).data()).join()]));
  `;
  const loader = fileURLToPath(new URL('../../../testing/loader/register.mjs', import.meta.url));
  const out = execFileSync(
    process.execPath,
    ['--disallow-code-generation-from-strings', '--import', loader, '--input-type=module', '-e', script],
    { encoding: 'utf8', timeout: 240_000 },
  );
  expect(JSON.parse(out)).toEqual(['native', '1,3,6']);
});
