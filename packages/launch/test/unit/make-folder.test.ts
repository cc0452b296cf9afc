import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeFolder } from '../../src/make-folder.ts';

it('makes a folder with those above it, and takes one that is there', () => {
  const root = mkdtempSync(join(tmpdir(), 'ringwise-folder-'));
  try {
    const folder = join(root, 'a', 'b', 'c');
    makeFolder(folder);
    makeFolder(folder);
    expect(statSync(folder).isDirectory()).toBe(true);
    writeFileSync(join(root, 'file'), '');
    expect(() => makeFolder(join(root, 'file'))).toThrow(/EEXIST/);
    expect(() => makeFolder(join(root, 'file', 'below'))).toThrow(/EEXIST|ENOTDIR/);
  } finally {
    rmSync(root, { recursive: true });
  }
});

// mkdirSync() of Node.js with `recursive` does not return for this path.
it.skipIf(process.platform !== 'linux')('throws below /proc', () => {
  expect(() => makeFolder('/proc/ringwise/folder')).toThrow(/ENOENT|EACCES|EPERM/);
});
