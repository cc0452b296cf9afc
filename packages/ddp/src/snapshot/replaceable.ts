// Finds the file that a save replaces. Saving renames a new file, which would replace a link or a device of that name.
import { realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Returns the path of the file to replace. For a symbolic link that is its target, so that the link stays. Throws for a
 * device, a pipe or a socket, which a rename would remove, and for a folder that is not there.
 */
export async function replaceable(path: string): Promise<string> {
  const found = await stat(path).catch(() => null);
  if (found === null) {
    const folder = dirname(path);
    const isThere = await stat(folder).then(
      (above) => above.isDirectory(),
      () => false,
    );
    if (!isThere) throw new Error(`there is no folder '${folder}'; make it first`);
  }
  if (found === null || found.isDirectory()) return path;
  if (!found.isFile()) throw new Error('it is a device, a pipe or a socket; expected a file or a new name');
  return await realpath(path);
}
