import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeFolder, makeFolderAsync } from '../../src/files/make-folder.ts';

const forms = { makeFolder: async (path: string) => makeFolder(path), makeFolderAsync };

describe.each(Object.entries(forms))('%s', (_, make) => {
  it('makes a folder with those above it, and takes one that is there', async () => {
    const root = mkdtempSync(join(tmpdir(), 'ringwise-folder-'));
    try {
      const folder = join(root, 'a', 'b', 'c');
      await make(folder);
      await make(folder);
      expect(statSync(folder).isDirectory()).toBe(true);
      writeFileSync(join(root, 'file'), '');
      await expect(make(join(root, 'file'))).rejects.toThrow(/EEXIST/);
      await expect(make(join(root, 'file', 'below'))).rejects.toThrow(/EEXIST|ENOTDIR/);
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  // mkdir() and mkdirSync() of Node.js with `recursive` do not return for this path.
  it.skipIf(process.platform !== 'linux')('throws below /proc', async () => {
    await expect(make('/proc/ringwise/folder')).rejects.toThrow(/ENOENT|EACCES|EPERM/);
  });
});
