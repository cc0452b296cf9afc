// Writes small ELF files, with what the checks of compiled files read. Layout as in elf(5).

export const machines = { x64: 0x3e, arm64: 0xb7 };

export interface ElfOptions {
  readonly machine?: number;
  /** Newest version of glibc whose symbols it needs; null for none. */
  readonly glibc?: string | null;
  /** Libraries that it needs. */
  readonly libraries?: readonly string[];
  readonly exports?: readonly string[];
  /** Functions that others must define. */
  readonly imports?: readonly string[];
}

const addonExports = ['napi_register_module_v1', 'node_api_module_get_api_version_v1'];

/** Returns a shared library for Linux: without options, an addon for x64 and glibc 2.17. */
export function elf(options: ElfOptions = {}): Buffer {
  const {
    machine = machines.x64,
    glibc = '2.17',
    libraries = ['libc.so.6'],
    exports = addonExports,
    imports = ['memcpy'],
  } = options;
  let names = '\0';
  const nameOf = (text: string): number => {
    names += `${text}\0`;
    return names.length - text.length - 1;
  };
  const symbols = [...exports, ...imports].map((name, index) => {
    const symbol = Buffer.alloc(24);
    symbol.writeUInt32LE(nameOf(name));
    symbol.writeUInt8(0x12, 4); // a global function
    symbol.writeUInt16LE(index < exports.length ? 1 : 0, 6); // defined in section 1, or not here
    return symbol;
  });
  const dynamic = libraries.map((library) => {
    const entry = Buffer.alloc(16);
    entry.writeBigUInt64LE(1n); // the file needs a library
    entry.writeBigUInt64LE(BigInt(nameOf(library)), 8);
    return entry;
  });
  const versions = glibc === null ? [] : ['GLIBC_2.4', `GLIBC_${glibc}`].map(nameOf);
  const needs = Buffer.alloc(versions.length === 0 ? 0 : 48);
  if (versions.length > 0) {
    needs.writeUInt16LE(versions.length, 2);
    needs.writeUInt32LE(16, 8); // offset of the first
  }
  versions.forEach((name, index) => {
    needs.writeUInt32LE(name, 24 + index * 16);
    needs.writeUInt32LE(16, 28 + index * 16); // offset of the next
  });
  // Section 0 has the names of all others.
  const contents = [
    { type: 3, bytes: Buffer.from(names), info: 0 },
    { type: 11, bytes: Buffer.concat(symbols), info: 0 },
    { type: 6, bytes: Buffer.concat(dynamic), info: 0 },
    { type: 0x6ffffffe, bytes: needs, info: versions.length > 0 ? 1 : 0 },
  ];
  const header = Buffer.alloc(64);
  let at = header.length;
  const sections = contents.map(({ type, bytes, info }) => {
    const section = Buffer.alloc(64);
    section.writeUInt32LE(type, 4);
    section.writeBigUInt64LE(BigInt(at), 24);
    section.writeBigUInt64LE(BigInt(bytes.length), 32);
    section.writeUInt32LE(info, 44);
    at += bytes.length;
    return section;
  });
  header.writeUInt32BE(0x7f454c46);
  header.writeUInt8(2, 4); // 64 bits
  header.writeUInt8(1, 5); // little-endian
  header.writeUInt16LE(machine, 18);
  header.writeBigUInt64LE(BigInt(at), 40);
  header.writeUInt16LE(64, 58); // bytes of a section's header
  header.writeUInt16LE(sections.length, 60);
  return Buffer.concat([header, ...contents.map(({ bytes }) => bytes), ...sections]);
}
