// Checks compiled files against their platform. Functions return the faults as sentences, and none if all is right.
// The release gates and cross-build.mjs call them.
import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { compareVersions, newestVersion, readBinary } from './binary.mjs';
import { targets } from './targets.mjs';

/** What a file must export: Node looks for the first two in an addon, programs in C for the third in the library. */
const required = [
  { ending: '.node', names: ['napi_register_module_v1', 'node_api_module_get_api_version_v1'] },
  { ending: '/libringwise.so', names: ['ringwise_abi_version', 'ringwise_group_create'] },
  { ending: '/libringwise.dylib', names: ['ringwise_abi_version', 'ringwise_group_create'] },
];

/** Libraries besides those of the target that a file may need: its users have them. */
const ownLibraries = { 'mpi-openmpi.node': ['libmpi'], 'mpi-mpich.node': ['libmpi', 'libmpich'] };

/**
 * Files that copy much memory. They must do it by the C library. The library of the compiler zig is one object: if a
 * file needs one function of it that the C library lacks, then the object's own memcpy() and exp() take the place of
 * the C library's, which are faster. Such functions are the division of 128 bits, and on arm64 the comparison of long
 * doubles. std::sort() of integers brings the latter, because libc++ has both compiled in one file; std::ranges::sort()
 * does not.
 */
const copying = ['coll.node', 'libringwise.so', 'tensor.node'];

/** Largest size of a file in bytes. tensor.node has 2.7 MB, and 8.8 MB with CUDA images of all architectures. */
const sizeLimits = {
  'coll.node': 2.5e6,
  'libringwise.so': 2.5e6,
  'libringwise.dylib': 2.5e6,
  'tensor.node': 10e6,
};

/** Tells whether a file must be a compiled one, by its name. */
export const isNamedAsBinary = (path) => /\.(node|so|dylib|dll)$/.test(path);

/**
 * Checks one compiled file for a target of targets.mjs: format, processor, C library, oldest system, needed libraries,
 * exports, imports, size. `floor` is the oldest glibc that it must run on, `shown` what the sentences call the file.
 */
export function faultsOfBinary(path, name, { floor = targets[name].floor, shown = path } = {}) {
  const target = { ...targets[name], floor };
  let facts;
  try {
    facts = readBinary(path);
  } catch (error) {
    return [error.message.replace(path, shown)];
  }
  if (facts === null) return [`${shown} is no compiled file; expected one for ${name}.`];
  const place = ({ os, cpu, libc }) => [os, cpu, libc].filter(Boolean).join('-');
  // A file that calls no function of the C library is right for both.
  const libc = facts.libc ?? target.libc;
  if (place({ ...facts, libc }) !== place(target))
    return [`${shown} is for ${place(facts)}; expected ${place(target)}.`];
  return [
    ...faultsOfFloor(facts, target),
    ...faultsOfSystem(facts, target),
    ...faultsOfSignature(facts),
    ...faultsOfLibraries(path, facts, target),
    ...faultsOfExports(path, facts),
    ...faultsOfImports(path, facts),
    ...faultsOfSize(path),
  ].map((fault) => `${shown} ${fault}`);
}

function faultsOfFloor({ versions }, { floor }) {
  const found = newestVersion(versions, 'GLIBC_');
  return floor !== undefined && found !== null && compareVersions(found, floor) > 0
    ? [`needs glibc ${found}; expected at most ${floor}.`]
    : [];
}

function faultsOfSystem({ minimumOs }, target) {
  return minimumOs !== null && compareVersions(minimumOs, target.minimumOs) > 0
    ? [`needs ${target.os} ${minimumOs}; expected at most ${target.minimumOs}.`]
    : [];
}

/** Apple silicon ends a process that loads code without a signature; one without a certificate is enough. */
function faultsOfSignature({ os, cpu, isSigned }) {
  return os === 'darwin' && cpu === 'arm64' && !isSigned ? ['has no code signature.'] : [];
}

function faultsOfLibraries(path, { libraries }, target) {
  const known = [...target.libraries, ...(ownLibraries[basename(path)] ?? [])];
  // Windows does not tell upper from lower case.
  const named = (library) => (target.os === 'win32' ? library.toLowerCase() : library);
  const isKnown = (library) => known.some((one) => named(library).startsWith(`${one}.`));
  const unknown = libraries.filter((library) => !isKnown(library));
  return unknown.length > 0
    ? [`needs ${unknown.join(', ')}, which not every ${target.os} has; link it statically.`]
    : [];
}

function faultsOfExports(path, { exports }) {
  const names = required.find(({ ending }) => path.endsWith(ending))?.names ?? [];
  const missing = names.filter((name) => !exports.includes(name));
  return missing.length > 0 ? [`does not export ${missing.join(', ')}.`] : [];
}

function faultsOfImports(path, { format, imports }) {
  return format === 'elf' && copying.includes(basename(path)) && !imports.includes('memcpy')
    ? [
        "has a memcpy() of its own; link the C library's, and find the function that needs the compiler's library.",
      ]
    : [];
}

function faultsOfSize(path) {
  const limit = sizeLimits[basename(path)] ?? Infinity;
  const { size } = statSync(path);
  return size > limit ? [`has ${size} bytes; expected at most ${limit}.`] : [];
}
