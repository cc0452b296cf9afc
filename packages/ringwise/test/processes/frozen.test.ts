// Tests that training and errors work where Error is frozen, as under Node's --frozen-intrinsics.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'ringwise-frozen-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('a program trains, saves and gets its errors under --frozen-intrinsics', () => {
  const program = new URL('../fixtures/frozen.mjs', import.meta.url).pathname;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--no-warnings', '--frozen-intrinsics', program, join(folder, 'a.snapshot')],
    { encoding: 'utf8', timeout: 240_000, env: { ...process.env, RINGWISE_TENSOR_DEBUG: '1' } },
  );
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'trained\n', stderr: '' });
});
