// Reads what a shared library in ELF (Linux) offers and needs. Numbers as in elf(5).

const machines = { 62: 'x64', 183: 'arm64' };
/** Types of sections. */
const DYNAMIC = 6;
const DYNSYM = 11;
const VERNEED = 0x6ffffffe;
/** Tag of an entry in the dynamic section that names a library. */
const NEEDED = 1;

export const isElf = (bytes) => bytes.length >= 64 && bytes.readUInt32BE(0) === 0x7f454c46;

/** Returns the facts of a 64-bit little-endian ELF file; see readBinary(). */
export function readElf(bytes) {
  if (bytes[4] !== 2 || bytes[5] !== 1) throw new Error('it is no 64-bit little-endian ELF file');
  const sections = sectionsOf(bytes);
  const libraries = entriesOf(sections, DYNAMIC, 16)
    .filter(({ at }) => Number(bytes.readBigUInt64LE(at)) === NEEDED)
    .map(({ at, names }) => textAt(bytes, names + Number(bytes.readBigUInt64LE(at + 8))));
  const versions = versionsOf(bytes, sections);
  const symbols = entriesOf(sections, DYNSYM, 24).map(({ at, names }) => ({
    name: textAt(bytes, names + bytes.readUInt32LE(at)),
    isDefined: bytes.readUInt16LE(at + 6) !== 0,
    isLocal: bytes[at + 4] >> 4 === 0,
  }));
  const namesOf = (kept) =>
    symbols.filter((symbol) => !symbol.isLocal && kept(symbol)).map(({ name }) => name);
  return {
    format: 'elf',
    os: 'linux',
    cpu: machines[bytes.readUInt16LE(18)] ?? null,
    libc: libcOf(libraries, versions),
    libraries,
    versions,
    exports: namesOf(({ isDefined }) => isDefined),
    imports: namesOf(({ isDefined }) => !isDefined),
    minimumOs: null,
    isSigned: null,
  };
}

function sectionsOf(bytes) {
  const table = Number(bytes.readBigUInt64LE(40));
  const [size, count] = [bytes.readUInt16LE(58), bytes.readUInt16LE(60)];
  return Array.from({ length: count }, (_, index) => {
    const at = table + index * size;
    return {
      type: bytes.readUInt32LE(at + 4),
      offset: Number(bytes.readBigUInt64LE(at + 24)),
      bytes: Number(bytes.readBigUInt64LE(at + 32)),
      link: bytes.readUInt32LE(at + 40),
      info: bytes.readUInt32LE(at + 44),
    };
  });
}

/** Returns the offsets of the entries of all sections of a type, each with the offset of the section's names. */
function entriesOf(sections, type, size) {
  return sections
    .filter((section) => section.type === type)
    .flatMap((section) =>
      Array.from({ length: section.bytes / size }, (_, index) => ({
        at: section.offset + index * size,
        names: sections[section.link].offset,
      })),
    );
}

/** Returns the versions of symbols that the file needs, such as GLIBC_2.28, each once. */
function versionsOf(bytes, sections) {
  const found = new Set();
  for (const section of sections.filter(({ type }) => type === VERNEED)) {
    const names = sections[section.link].offset;
    let file = section.offset;
    for (let left = section.info; left > 0; --left) {
      let version = file + bytes.readUInt32LE(file + 8);
      for (let more = bytes.readUInt16LE(file + 2); more > 0; --more) {
        found.add(textAt(bytes, names + bytes.readUInt32LE(version + 8)));
        version += bytes.readUInt32LE(version + 12);
      }
      file += bytes.readUInt32LE(file + 12);
    }
  }
  return [...found];
}

function libcOf(libraries, versions) {
  if (versions.some((version) => version.startsWith('GLIBC_')) || libraries.includes('libc.so.6'))
    return 'glibc';
  // musl's loader takes every library of the name libc.* for itself.
  return libraries.some((name) => name === 'libc.so' || name.startsWith('libc.musl-')) ? 'musl' : null;
}

const textAt = (bytes, at) => bytes.toString('utf8', at, bytes.indexOf(0, at));
