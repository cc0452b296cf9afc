// Checks of arguments, and the opening of files, for safetensors and NumPy files.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type Check, isTensor } from '../../checks/value-checks.ts';

export const aPath: Check = {
  expected: 'a path, as a string',
  fits: (value) => typeof value === 'string' && value !== '',
};

export const tensorsByName: Check = {
  expected: 'an object of tensors by name',
  fits: (value) =>
    typeof value === 'object' &&
    value !== null &&
    !(Symbol.iterator in value) &&
    !isTensor(value) &&
    Object.values(value).every(isTensor),
};

/** Opens a regular file for reading. Throws for a folder, and for a pipe or a device, which may never end. */
export async function openRegular(path: string): Promise<FileHandle> {
  // Without O_NONBLOCK, opening a pipe waits for a writer. Windows has neither such pipes nor the flag.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stat = await file.stat();
    if (stat.isFile()) return file;
    const kind = stat.isDirectory() ? 'a folder' : stat.isFIFO() ? 'a pipe' : 'a device';
    throw new Error(`expected a regular file, got ${kind}`);
  } catch (error) {
    await file.close();
    throw error;
  }
}
