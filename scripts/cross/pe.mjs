// Reads what a DLL in PE format (Windows) offers and needs. Offsets as in Microsoft's "PE Format".

const machines = { 34404: 'x64', 43620: 'arm64' };

const headerOf = (bytes) => bytes.readUInt32LE(60);

export const isPe = (bytes) =>
  bytes.length >= 64 &&
  bytes.toString('latin1', 0, 2) === 'MZ' &&
  headerOf(bytes) + 4 <= bytes.length &&
  bytes.toString('latin1', headerOf(bytes), headerOf(bytes) + 4) === 'PE\0\0';

/** Returns the facts of a 64-bit PE file; see readBinary(). */
export function readPe(bytes) {
  const header = headerOf(bytes);
  const optional = header + 24;
  if (bytes.readUInt16LE(optional) !== 0x20b) throw new Error('it is no 64-bit PE file');
  const sections = sectionsOf(bytes, header);
  const directory = (index) => offsetOf(sections, bytes.readUInt32LE(optional + 112 + index * 8));
  return {
    format: 'pe',
    os: 'win32',
    cpu: machines[bytes.readUInt16LE(header + 4)] ?? null,
    libc: null,
    libraries: librariesOf(bytes, sections, directory(1)),
    versions: [],
    imports: [],
    exports: exportsOf(bytes, sections, directory(0)),
    minimumOs: `${bytes.readUInt16LE(optional + 48)}.${bytes.readUInt16LE(optional + 50)}`,
    isSigned: null,
  };
}

function sectionsOf(bytes, header) {
  const table = header + 24 + bytes.readUInt16LE(header + 20);
  return Array.from({ length: bytes.readUInt16LE(header + 6) }, (_, index) => {
    const at = table + index * 40;
    const [size, address, stored, offset] = [8, 12, 16, 20].map((field) => bytes.readUInt32LE(at + field));
    return { address, bytes: Math.max(size, stored), offset };
  });
}

/** Returns where in the file the bytes of a virtual address lie; null for address 0, which means "there is none". */
function offsetOf(sections, address) {
  if (address === 0) return null;
  const section = sections.find((one) => address >= one.address && address < one.address + one.bytes);
  if (!section) throw new Error(`no section has the address ${address}`);
  return address - section.address + section.offset;
}

function librariesOf(bytes, sections, table) {
  const names = [];
  if (table === null) return names;
  for (let at = table; bytes.readUInt32LE(at + 12) !== 0; at += 20)
    names.push(textAt(bytes, offsetOf(sections, bytes.readUInt32LE(at + 12))));
  return names;
}

function exportsOf(bytes, sections, table) {
  if (table === null) return [];
  const names = offsetOf(sections, bytes.readUInt32LE(table + 32));
  return Array.from({ length: bytes.readUInt32LE(table + 24) }, (_, index) =>
    textAt(bytes, offsetOf(sections, bytes.readUInt32LE(names + index * 4))),
  );
}

const textAt = (bytes, at) => bytes.toString('utf8', at, bytes.indexOf(0, at));
