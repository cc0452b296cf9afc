// Finds the files in a tar archive. An archive is a sequence of 512-byte headers, each followed by its file, which is
// padded to a multiple of 512. It ends with blocks of zeros; an archive that was appended follows them. Names and sizes
// that do not fit into a header are in a separate entry before it: of GNU (type L, names only) or of pax (type x).
// https://www.gnu.org/software/tar/manual/html_node/Standard.html
import { badFile } from '../../errors.ts';
import type { OpenFile } from '../open-file.ts';
import { isSparse, notWhole } from './tar-sample.ts';

const blockBytes = 512;
const mostNameBytes = 2 ** 20;

export interface TarEntry {
  readonly name: string;
  /** Offset of its first byte in the archive. */
  readonly offset: number;
  readonly size: number;
}

/**
 * Yields the regular files. Throws ERR_DATA_FILE if a header is damaged, the archive is truncated, or a file is a hard
 * link or sparse.
 */
export function* tarEntries(file: OpenFile): Generator<TarEntry, void, undefined> {
  const header = Buffer.alloc(blockBytes);
  // Name and size for the next header, from the separate entries before it.
  let ahead: Pax = {};
  let hasEnd = false;
  for (let at = 0; ; ) {
    if (at + blockBytes > file.size) {
      if (hasEnd) return;
      throw cutOff(file, at);
    }
    file.read(header, at);
    hasEnd = header.every((byte) => byte === 0);
    if (hasEnd) {
      at += blockBytes;
      continue;
    }
    if (!hasRightChecksum(header)) {
      const got = header.toString('latin1', 148, 156).replaceAll('\0', ' ').trim();
      throw damaged(file, at, ['a header is damaged', 'its checksum', JSON.stringify(got)]);
    }
    const type = String.fromCharCode(header[156]!);
    const size = type === 'x' || type === 'L' ? sizeIn(header) : (ahead.size ?? sizeIn(header));
    const offset = at + blockBytes;
    if (!Number.isSafeInteger(size) || size < 0) {
      throw damaged(file, at, ['a header is damaged', 'a size', `${size}`]);
    }
    if (offset + size > file.size) throw cutOff(file, at);
    if (type === 'x' || type === 'L') {
      if (size > mostNameBytes) throw damaged(file, at, ['a name is too long', '1 MiB at most', `${size}`]);
      const text = Buffer.alloc(size);
      file.read(text, offset);
      const found = type === 'L' ? { name: untilZero(text) } : paxOf(text);
      if (found === null) throw damaged(file, at, ['a pax header is damaged', 'records', 'another text']);
      ahead = { ...ahead, ...found };
    } else {
      const name = ahead.name ?? nameIn(header);
      const where = `${file.path}, byte ${at}`;
      if (type === '1') throw notWhole('TarFile', where, name, 'a hard link');
      if (type === 'S' || ahead.isSparse) throw notWhole('TarFile', where, name, 'sparse');
      if (type === '0' || type === '\0' || type === '7') {
        yield { name, offset, size };
      }
      if (type !== 'g') ahead = {};
    }
    at = offset + Math.ceil(size / blockBytes) * blockBytes;
  }
}

function hasRightChecksum(header: Buffer): boolean {
  let sum = 8 * 32; // the 8 bytes of the checksum itself count as spaces
  for (let i = 0; i < blockBytes; i++) if (i < 148 || i >= 156) sum += header[i]!;
  return sum === Number.parseInt(untilZero(header.subarray(148, 156)).trim(), 8);
}

function sizeIn(header: Buffer): number {
  const field = header.subarray(124, 136);
  // GNU stores sizes from 8 GiB on as big-endian numbers with the first bit set.
  if (field[0] === 0x80) return Number(field.readBigUInt64BE(4));
  return Number.parseInt(untilZero(field).trim() || '0', 8);
}

function nameIn(header: Buffer): string {
  const name = untilZero(header.subarray(0, 100));
  // GNU's old headers ('ustar  ') have other data where the prefix is.
  const prefix =
    header.toString('latin1', 257, 263) === 'ustar\0' ? untilZero(header.subarray(345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

function untilZero(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? field.length : end);
}

interface Pax {
  name?: string;
  size?: number;
  isSparse?: boolean;
}

/**
 * Parses pax records, which have the form `<length of the record> <key>=<value>\n`. Returns null if one has another
 * form.
 */
function paxOf(text: Buffer): Pax | null {
  const pax: Pax = {};
  for (let at = 0; at < text.length && text[at] !== 0; ) {
    const [, digits] = /^(\d{1,7}) /.exec(text.toString('latin1', at, at + 8)) ?? [];
    const length = Number(digits);
    if (digits === undefined || length <= digits.length + 1 || at + length > text.length) return null;
    const space = at + digits.length;
    const record = text.toString('utf8', space + 1, at + length - 1);
    const value = record.slice(record.indexOf('=') + 1);
    if (record.startsWith('path=')) pax.name = value;
    if (record.startsWith('size=')) pax.size = Number(value);
    if (isSparse([record])) pax.isSparse = true;
    at += length;
  }
  return pax;
}

function cutOff(file: OpenFile, at: number) {
  return damaged(file, at, ['the archive is cut off', 'its end', `${file.size} bytes`]);
}

function damaged(file: OpenFile, at: number, what: readonly [string, string, string]) {
  return badFile('TarFile', `${file.path}, byte ${at}`, what, 'Get the file again.');
}
