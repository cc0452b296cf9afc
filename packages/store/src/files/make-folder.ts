import { mkdirSync, statSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a folder and its missing parents, as mkdirSync() with `recursive` does; that never returns for a path below
 * /proc, where no folder can be made.
 *
 * @internal
 */
export function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (!statSync(path).isDirectory()) throw error;
  }
}

/** Does the same as makeFolder(), but does not block this thread while the file system does not answer. */
export async function makeFolderAsync(path: string, mode?: number): Promise<void> {
  if (await isFolder(path)) return;
  if (dirname(path) !== path) await makeFolderAsync(dirname(path), mode);
  try {
    await mkdir(path, mode);
  } catch (error) {
    if (!(await isFolder(path))) throw error; // unless another process has made it meanwhile
  }
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
