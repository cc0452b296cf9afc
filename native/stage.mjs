// Copies the build outputs into the npm packages of this platform, where both source checkouts and installed
// packages look for them: one package for tensor, one for collectives, one for the MPI addons of
// collectives, and one for the C library and its header.
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const platform = `${process.platform}-${process.arch}`;
const release = new URL('./build/Release/', import.meta.url);

/** Returns the folder of this platform's npm package of that family, as a URL. */
function folderOf(family) {
  const folder = new URL(`./npm/${family}-${platform}/`, import.meta.url);
  if (!existsSync(folder)) throw new Error(`native: there is no package ${family}-${platform} in native/npm`);
  return folder;
}

/** Replaces a file by a rename: a program that has mapped the old file keeps it, and does not crash. */
function copy(from, to) {
  const fresh = `${fileURLToPath(to)}.new`;
  copyFileSync(from, fresh);
  renameSync(fresh, to);
}

const capi = folderOf('capi');
const library = process.platform === 'darwin' ? 'libringwise.dylib' : 'libringwise.so';
copy(new URL(library, release), new URL(library, capi));
copy(new URL('./coll/include/ringwise.h', import.meta.url), new URL('ringwise.h', capi));
copy(new URL('coll.node', release), new URL('coll.node', folderOf('collectives')));
copy(new URL('tensor.node', release), new URL('tensor.node', folderOf('tensor')));
// An MPI addon is built only if this machine has that MPI. If it is not in the build folder, a copy that was staged
// earlier is removed.
for (const built of process.platform === 'linux' ? ['mpi-openmpi.node', 'mpi-mpich.node'] : []) {
  const staged = new URL(built, folderOf('collectives-mpi'));
  rmSync(staged, { force: true });
  if (existsSync(new URL(built, release))) copy(new URL(built, release), staged);
}
