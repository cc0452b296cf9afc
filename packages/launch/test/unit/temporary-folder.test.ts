// Temporary folders are removed, and no job fails by one that cannot be.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { removeTemporary } from '../../src/report/temporary-folder.ts';

it('a temporary folder is removed with its files, and one that cannot be removed fails nothing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-temporary-'));
  try {
    const inner = join(folder, 'attempt_0');
    mkdirSync(inner);
    writeFileSync(join(inner, 'error.json'), '{}');
    removeTemporary(inner);
    removeTemporary(inner); // it is gone already
    expect(existsSync(inner)).toBe(false);
    const refused = join(folder, 'x'.repeat(300)); // the system refuses names of this length
    expect(() => rmSync(refused, { recursive: true, force: true })).toThrow();
    removeTemporary(refused);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
