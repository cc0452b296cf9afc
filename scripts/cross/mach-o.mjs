// Reads what a dynamic library in Mach-O (macOS) offers and needs. Numbers as in mach-o/loader.h and mach-o/nlist.h.

const machines = { 16777223: 'x64', 16777228: 'arm64' };
/** Load commands. */
const SYMTAB = 0x2;
const LOAD_DYLIB = 0xc;
const CODE_SIGNATURE = 0x1d;
const VERSION_MIN_MACOSX = 0x24;
const BUILD_VERSION = 0x32;
/** Bits of a symbol's type. */
const STAB = 0xe0;
const TYPE = 0x0e;
const PRIVATE_EXTERNAL = 0x10;
const EXTERNAL = 0x01;

export const isMachO = (bytes) => bytes.length >= 32 && bytes.readUInt32LE(0) === 0xfeedfacf;

/** Returns the facts of a 64-bit Mach-O file; see readBinary(). */
export function readMachO(bytes) {
  const facts = {
    format: 'mach-o',
    os: 'darwin',
    cpu: machines[bytes.readUInt32LE(4)] ?? null,
    libc: null,
    libraries: [],
    versions: [],
    imports: [],
    exports: [],
    minimumOs: null,
    isSigned: false,
  };
  let at = 32;
  for (let left = bytes.readUInt32LE(16); left > 0; --left) {
    const command = bytes.readUInt32LE(at) & 0x7fffffff;
    if (command === LOAD_DYLIB) facts.libraries.push(textAt(bytes, at + bytes.readUInt32LE(at + 8)));
    if (command === VERSION_MIN_MACOSX) facts.minimumOs = versionOf(bytes.readUInt32LE(at + 8));
    if (command === BUILD_VERSION) facts.minimumOs = versionOf(bytes.readUInt32LE(at + 12));
    if (command === CODE_SIGNATURE) facts.isSigned = isSignature(bytes, bytes.readUInt32LE(at + 8));
    if (command === SYMTAB) facts.exports.push(...exportsOf(bytes, at));
    at += bytes.readUInt32LE(at + 4);
  }
  return facts;
}

/** Returns the names of the symbols that the table of a load command defines for others, without their underscore. */
function exportsOf(bytes, command) {
  const [symbols, count, names] = [8, 12, 16].map((offset) => bytes.readUInt32LE(command + offset));
  return Array.from({ length: count }, (_, index) => symbols + index * 16)
    .filter((at) => {
      const type = bytes[at + 4];
      const isOurs = (type & STAB) === 0 && (type & TYPE) !== 0;
      return isOurs && (type & EXTERNAL) !== 0 && (type & PRIVATE_EXTERNAL) === 0;
    })
    .map((at) => textAt(bytes, names + bytes.readUInt32LE(at)).replace(/^_/, ''));
}

/** Tells whether a signature, with or without a certificate, begins there: it is a "super blob", always big-endian. */
const isSignature = (bytes, at) => at + 4 <= bytes.length && bytes.readUInt32BE(at) === 0xfade0cc0;

/** Returns a version such as 11.0 of the number xxxx.yy.zz that it is stored in. */
const versionOf = (number) => `${number >>> 16}.${(number >>> 8) & 0xff}`;

const textAt = (bytes, at) => bytes.toString('utf8', at, bytes.indexOf(0, at));
