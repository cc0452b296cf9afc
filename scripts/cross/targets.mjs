// The platforms for which native binaries are released, and what must hold for a binary of each.
import { readConfig } from '../release/config.mjs';
import { root } from '../run.mjs';

/** Oldest glibc. Node 20 itself needs 2.28. */
const { glibc: floor } = readConfig(root, { isRehearsal: true });

const libraries = ['libc', 'libdl', 'libm', 'libpthread', 'librt', 'ld-linux-x86-64', 'ld-linux-aarch64'];

/** Oldest macOS: the one of the headers that zig has. Node 20 itself runs on 11.0, and from 10.15 on Intel. */
const macOs = '11.0';

/** Every macOS has it; it is also what libm, libpthread and libdl are. */
const macLibraries = ['/usr/lib/libSystem'];

/** musl is one library. Its loader takes this name for itself, whatever the file on a system is called. */
const muslLibraries = ['libc'];

/** Every Windows 10 has the last two, in lower case. The first is the program that loads the addon. */
const windowsLibraries = ['node', 'kernel32', 'msvcrt'];

/**
 * Maps a target to:
 *   os, cpu, libc  as in the package.json of its packages
 *   zig            what zig calls it, with the oldest version of its C library
 *   families       addons of these families have packages `family`-`target` in native/npm
 *   floor          oldest glibc
 *   minimumOs      oldest system, outside Linux; what the binary itself says
 *   libraries      names, without their versions, of the libraries that a binary may need, because every such system
 *                  has them
 */
export const targets = {
  'linux-x64': {
    os: 'linux',
    cpu: 'x64',
    libc: 'glibc',
    zig: `x86_64-linux-gnu.${floor}`,
    families: ['collectives', 'tensor', 'capi'],
    floor,
    libraries,
  },
  'linux-arm64': {
    os: 'linux',
    cpu: 'arm64',
    libc: 'glibc',
    zig: `aarch64-linux-gnu.${floor}`,
    families: ['collectives', 'tensor', 'capi'],
    floor,
    libraries,
  },
  'linuxmusl-x64': {
    os: 'linux',
    cpu: 'x64',
    libc: 'musl',
    zig: 'x86_64-linux-musl',
    families: ['collectives', 'tensor', 'capi'],
    libraries: muslLibraries,
  },
  'linuxmusl-arm64': {
    os: 'linux',
    cpu: 'arm64',
    libc: 'musl',
    zig: 'aarch64-linux-musl',
    families: ['collectives', 'tensor', 'capi'],
    libraries: muslLibraries,
  },
  'darwin-arm64': {
    os: 'darwin',
    cpu: 'arm64',
    zig: `aarch64-macos.${macOs}`,
    families: ['collectives', 'tensor', 'capi'],
    minimumOs: macOs,
    libraries: macLibraries,
  },
  'darwin-x64': {
    os: 'darwin',
    cpu: 'x64',
    zig: `x86_64-macos.${macOs}`,
    families: ['collectives', 'tensor', 'capi'],
    minimumOs: macOs,
    libraries: macLibraries,
  },
  'win32-x64': {
    os: 'win32',
    cpu: 'x64',
    zig: 'x86_64-windows-gnu',
    families: ['tensor'],
    minimumOs: '10.0',
    libraries: windowsLibraries,
  },
};

/** Returns the name of the target whose packages have this package.json; null for a package of no single platform. */
export function targetOf({ os, cpu, libc }) {
  const fits = ([, target]) => target.os === os?.[0] && target.cpu === cpu?.[0] && target.libc === libc?.[0];
  return os ? (Object.entries(targets).find(fits)?.[0] ?? null) : null;
}
