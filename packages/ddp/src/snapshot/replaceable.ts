// Finds the file that a save replaces, and names the new file that it writes and renames. A rename would also replace a
// link or a device.
import { randomUUID } from 'node:crypto';
import { readdir, realpath, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';

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

/** Returns a name beside `path` for the file that replaces it. No other save uses it, also not one of this process. */
export const temporaryFor = (path: string): string =>
  `${path}.${hostname()}-${process.pid}-${randomUUID()}.tmp`;

/** Removes temporary files of processes of this host that were killed while they wrote to the same path. */
export async function removeLeftovers(path: string): Promise<void> {
  const start = `${basename(path)}.${hostname()}-`;
  for (const name of await readdir(dirname(path))) {
    const pid = name.startsWith(start) ? /^(\d+)-.*\.tmp$/.exec(name.slice(start.length))?.[1] : undefined;
    if (pid !== undefined && !isAlive(Number(pid))) await rm(join(dirname(path), name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
