import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { strays } from '../../parts.mjs';

const root = fileURLToPath(new URL('../../..', import.meta.url));

it('every test in test/full belongs to a part', () => {
  expect(strays(root)).toEqual([]);
});

it('a test that belongs to no part is found', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-parts-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const path of [
    'packages/a/test/full/mpi/b.test.ts',
    'native/test/full/c.test.ts',
    'native/test/full/d/e.test.ts',
  ]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), '');
  }
  expect(strays(folder)).toEqual(['native/test/full/c.test.ts', 'native/test/full/d']);
});
