// Reads what a compiled file needs: its format, the processor, and the newest version of glibc.
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

const elfMachines = { 62: 'x64', 183: 'arm64' };
const machoMachines = { 16777223: 'x64', 16777228: 'arm64' };
const peMachines = { 34404: 'x64', 43620: 'arm64' };

/**
 * Returns `{ os, cpu }` of an ELF, Mach-O or PE file, with the values of package.json, and for ELF `glibc`, the newest
 * version whose symbols it uses, as [major, minor], or null. Fields are null if the file is none of these.
 */
export function readBinary(path) {
  const bytes = readFileSync(path);
  if (bytes.length < 64) return { os: null, cpu: null, glibc: null };
  if (bytes.readUInt32BE(0) === 0x7f454c46)
    return { os: 'linux', cpu: elfMachines[bytes.readUInt16LE(18)] ?? null, glibc: newestGlibc(bytes) };
  if (bytes.readUInt32LE(0) === 0xfeedfacf)
    return { os: 'darwin', cpu: machoMachines[bytes.readUInt32LE(4)] ?? null, glibc: null };
  const header = bytes.toString('latin1', 0, 2) === 'MZ' ? bytes.readUInt32LE(60) : bytes.length;
  if (header + 6 <= bytes.length && bytes.toString('latin1', header, header + 4) === 'PE\0\0')
    return { os: 'win32', cpu: peMachines[bytes.readUInt16LE(header + 4)] ?? null, glibc: null };
  return { os: null, cpu: null, glibc: null };
}

/** Tells whether a file begins as compiled files of Linux, macOS or Windows do. */
export function isBinary(path) {
  const start = Buffer.alloc(4);
  const file = openSync(path, 'r');
  try {
    readSync(file, start, 0, 4, 0);
  } finally {
    closeSync(file);
  }
  return (
    start.readUInt32BE(0) === 0x7f454c46 ||
    start.readUInt32LE(0) === 0xfeedfacf ||
    start.toString('latin1', 0, 2) === 'MZ'
  );
}

/** The names of symbol versions stand in the file as text, each ended by a zero. */
function newestGlibc(bytes) {
  const versions = [...bytes.toString('latin1').matchAll(/GLIBC_(\d+)\.(\d+)(?:\.\d+)?\0/g)];
  const numbers = versions.map(([, major, minor]) => [Number(major), Number(minor)]);
  return numbers.sort(compareVersions).at(-1) ?? null;
}

/** Compares two versions given as [major, minor], as sort() expects. */
export function compareVersions(a, b) {
  return a[0] - b[0] || a[1] - b[1];
}
