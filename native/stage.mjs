// Copies what was built into the npm package of this platform, where source checkouts and installed packages look for
// it alike: the addons, and for other languages the library and its header.
import { copyFileSync, existsSync, rmSync } from 'node:fs';

const platform = `${process.platform}-${process.arch}`;
const target = new URL(`./npm/${platform}/`, import.meta.url);
if (!existsSync(target))
  throw new Error(`native: there is no prebuilt package for ${platform} in native/npm`);
const release = new URL('./build/Release/', import.meta.url);
for (const built of ['coll.node', 'tensor.node', 'libringwise.so']) {
  copyFileSync(new URL(built, release), new URL(built, target));
}
// Only where this machine has that MPI; one of an earlier build must not stay behind.
for (const built of ['mpi-openmpi.node', 'mpi-mpich.node']) {
  const staged = new URL(`./npm/mpi-${platform}/${built}`, import.meta.url);
  rmSync(staged, { force: true });
  if (existsSync(new URL(built, release))) copyFileSync(new URL(built, release), staged);
}
copyFileSync(new URL('./coll/include/ringwise.h', import.meta.url), new URL('ringwise.h', target));
