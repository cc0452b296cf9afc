// Checks compiled files and the packages that hold them against their platform. Each function returns the faults as
// sentences, and none if all is right. The release gates and cross-build.mjs call them.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { compareVersions, newestVersion, readBinary } from './binary.mjs';
import { targetOf, targets } from './targets.mjs';

/** What a file must export: Node looks for the first two in an addon, programs in C for the third in the library. */
const required = [
  { ending: '.node', names: ['napi_register_module_v1', 'node_api_module_get_api_version_v1'] },
  { ending: '/libringwise.so', names: ['ringwise_abi_version', 'ringwise_group_create'] },
];

/** Largest size in bytes of a file without CUDA images, which add about 3.5 MB to tensor.node. */
const sizeLimits = { 'coll.node': 2.5e6, 'libringwise.so': 2.5e6, 'tensor.node': 8e6 };

/** Checks the package in a folder: all files that it exports are there, and the compiled ones are for its platform. */
export function faultsOfNativePackage(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const name = targetOf(manifest);
  if (name === null)
    return [`${manifest.name}: its os, cpu and libc are those of no target of cross-build.mjs.`];
  const faults = exportedFiles(manifest).flatMap((path) => {
    const file = join(folder, path);
    if (!existsSync(file)) return [`${path} is not there. Build it: node scripts/cross-build.mjs ${name}`];
    return /\.(node|so|dylib|dll)$/.test(path) ? faultsOfBinary(file, name) : [];
  });
  return faults.map((fault) => `${manifest.name}: ${fault}`);
}

/** Returns the files that a package.json exports, except package.json. */
export const exportedFiles = ({ exports }) =>
  Object.values(exports ?? {})
    .filter((path) => path !== './package.json')
    .map((path) => path.slice(2));

/** Checks one compiled file: format, processor, C library, oldest system, needed libraries, exports, size. */
export function faultsOfBinary(path, name) {
  const target = targets[name];
  const facts = readBinary(path);
  if (facts === null) return [`${path} is no compiled file; expected one for ${name}.`];
  const place = ({ os, cpu, libc }) => [os, cpu, libc].filter(Boolean).join('-');
  // A file that calls no function of the C library is right for both.
  const libc = facts.libc ?? target.libc;
  if (place({ ...facts, libc }) !== place(target))
    return [`${path} is for ${place(facts)}; expected ${place(target)}.`];
  return [
    ...faultsOfFloor(facts, target),
    ...faultsOfLibraries(facts, target),
    ...faultsOfExports(path, facts),
    ...faultsOfSize(path),
  ].map((fault) => `${path} ${fault}`);
}

function faultsOfFloor({ versions }, { floor }) {
  const found = newestVersion(versions, 'GLIBC_');
  return floor !== undefined && found !== null && compareVersions(found, floor) > 0
    ? [`needs glibc ${found}; expected at most ${floor}.`]
    : [];
}

function faultsOfLibraries({ libraries }, target) {
  const isKnown = (library) => target.libraries.some((known) => library.startsWith(`${known}.`));
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

function faultsOfSize(path) {
  const limit = Object.entries(sizeLimits).find(([name]) => path.endsWith(`/${name}`))?.[1] ?? Infinity;
  const { size } = statSync(path);
  return size > limit ? [`has ${size} bytes; expected at most ${limit}.`] : [];
}
