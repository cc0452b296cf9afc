// Copies what was built into the npm packages of this platform, where source checkouts and installed packages look for
// it alike: each package of JavaScript has one of its own with its addon, and with what else is made of the same code.
import { copyFileSync, existsSync, rmSync } from 'node:fs';

const platform = `${process.platform}-${process.arch}`;
const release = new URL('./build/Release/', import.meta.url);

/** Returns the folder of a package's compiled part. */
function folderOf(family) {
  const folder = new URL(`./npm/${family}-${platform}/`, import.meta.url);
  if (!existsSync(folder)) throw new Error(`native: there is no package ${family}-${platform} in native/npm`);
  return folder;
}

const collectives = folderOf('collectives');
for (const built of ['coll.node', 'libringwise.so'])
  copyFileSync(new URL(built, release), new URL(built, collectives));
copyFileSync(new URL('./coll/include/ringwise.h', import.meta.url), new URL('ringwise.h', collectives));
copyFileSync(new URL('tensor.node', release), new URL('tensor.node', folderOf('tensor')));
// Only where this machine has that MPI; one of an earlier build must not stay behind.
for (const built of ['mpi-openmpi.node', 'mpi-mpich.node']) {
  const staged = new URL(built, folderOf('collectives-mpi'));
  rmSync(staged, { force: true });
  if (existsSync(new URL(built, release))) copyFileSync(new URL(built, release), staged);
}
