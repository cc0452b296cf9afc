// Zip archives as far as .npz needs them: members are stored or deflated, and not encrypted. Archives of more than
// 4 GiB (Zip64) are read, but not written. The directory at the end of the file lists the members. It is untrusted, so
// it is checked before memory is allocated for what it claims.
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
import type { FileHandle } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { crc32, createInflateRaw, deflateRaw } from 'node:zlib';
import { check, FormatError } from './errors.ts';
import { readFully } from './read-fully.ts';
import { excerpt, quoted } from './text.ts';

const localSignature = 0x04034b50;
const centralSignature = 0x02014b50;
const endSignature = 0x06054b50;
const wideLocatorSignature = 0x07064b50;
const wideEndSignature = 0x06064b50;
const localBytes = 30;
const centralBytes = 46;
const endBytes = 22;
const wideLocatorBytes = 20;
const wideEndBytes = 56;
const maxCommentBytes = 0xffff;
/** Maximum number of bytes that one byte of deflated data can expand to. */
const maxRatio = 1032;
const stored = 0;
const deflated = 8;
const flagUtf8 = 0x800;
/** Bytes of a member that are read or inflated at once. */
const pieceBytes = 2 ** 20;
/** Stands for a size or offset that is stored in 64 bits elsewhere (Zip64); smaller ones are stored as they are. */
const limit = 0xffffffff;
/** Type of the extra field that has the 64-bit sizes and offset of a member. */
const wideExtra = 1;

/** A member of a zip archive, as the archive's directory describes it. */
export interface ZipMember {
  /** Name of the file in the archive. */
  readonly name: string;
  /** 0 if the member is stored, 8 if it is deflated. */
  readonly method: number;
  /** CRC-32 of the unpacked bytes. */
  readonly crc: number;
  /** Size in the archive. */
  readonly packedBytes: number;
  /** Unpacked size. */
  readonly bytes: number;
  /** Offset of its packed bytes in the archive. */
  readonly start: number;
}

/** The directory's entry of a member. */
interface Listed extends Omit<ZipMember, 'start'> {
  /** The name as bytes, which may be no UTF-8. */
  readonly rawName: Buffer;
  /** Offset of its local header. */
  readonly offset: number;
}

/** Reads `bytes` bytes from `position` on. `what` names them in the error for a file that ends before. */
async function part(file: FileHandle, position: number, bytes: number, what: string): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  check(await readFully(file, buffer, position), `it ends inside ${what}`);
  return buffer;
}

const wide = (bytes: Buffer, at: number): number => Number(bytes.readBigUInt64LE(at));

/** Returns the sizes of a member. Each that is 2³² − 1 is replaced from its extra field, which has them in order. */
function widened(name: string, extra: Buffer, sizes: readonly number[]): number[] {
  if (!sizes.includes(limit)) return [...sizes];
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== wideExtra) continue;
    const field = extra.subarray(at + 4, at + 4 + extra.readUInt16LE(at + 2));
    let next = 0;
    return sizes.map((size) => {
      if (size !== limit) return size;
      check(next + 8 <= field.length, `the Zip64 sizes of ${quoted(name)} are damaged`);
      next += 8;
      return wide(field, next - 8);
    });
  }
  return [...sizes];
}

/** Parses the directory's entry at index `at`. `next` is the index of the entry after it. */
function parseListed(directory: Buffer, at: number, fileBytes: number): { listed: Listed; next: number } {
  const isHere = at + centralBytes <= directory.length && directory.readUInt32LE(at) === centralSignature;
  check(isHere, 'its directory is damaged');
  const nameEnd = at + centralBytes + directory.readUInt16LE(at + 28);
  const extraEnd = nameEnd + directory.readUInt16LE(at + 30);
  const next = extraEnd + directory.readUInt16LE(at + 32);
  check(next <= directory.length, 'its directory is damaged');
  const rawName = directory.subarray(at + centralBytes, nameEnd);
  const name = rawName.toString('utf8');
  const label = quoted(name);
  const narrow = [24, 20, 42].map((i) => directory.readUInt32LE(at + i));
  const [bytes, packedBytes, offset] = widened(name, directory.subarray(nameEnd, extraEnd), narrow) as [
    number,
    number,
    number,
  ];
  const crc = directory.readUInt32LE(at + 16);
  const method = directory.readUInt16LE(at + 10);
  check((directory.readUInt16LE(at + 8) & 1) === 0, `${label} is encrypted, which is not supported`);
  check(method === stored || method === deflated, `${label} is packed by method ${method}; expected 0 or 8`);
  check(offset + localBytes + packedBytes <= fileBytes, `${label} lies outside of the file`);
  const isPossible = method === stored ? bytes === packedBytes : bytes <= maxRatio * packedBytes;
  check(isPossible, `${label} cannot have ${bytes} bytes, as ${packedBytes} are in the file`);
  return { listed: { rawName, name, method, crc, packedBytes, bytes, offset }, next };
}

/**
 * Resolves with the member and the offset of its bytes, which depends on the length of its local header. `end` is the
 * offset of the directory.
 */
async function located(
  file: FileHandle,
  { offset, rawName, ...listed }: Listed,
  end: number,
): Promise<ZipMember> {
  const { name, packedBytes } = listed;
  const label = quoted(name);
  const nameEnd = localBytes + rawName.length;
  check(offset + nameEnd + packedBytes <= end, `${label} reaches into the directory`);
  const header = await part(file, offset, nameEnd, label);
  check(header.readUInt32LE(0) === localSignature, `${label} does not begin where the directory says`);
  const isSame = header.readUInt16LE(26) === rawName.length && header.subarray(localBytes).equals(rawName);
  check(isSame, `${label} has another name where it begins`);
  const start = offset + nameEnd + header.readUInt16LE(28);
  check(start + packedBytes <= end, `${label} reaches into the directory`);
  return { ...listed, start };
}

/** Checks that no members share bytes. Otherwise the bytes of a small file could be unpacked any number of times. */
function checkApart(members: readonly (readonly [offset: number, member: ZipMember])[]): void {
  let covered = 0;
  let before = '';
  for (const [offset, { name, start, packedBytes }] of members.toSorted(([a], [b]) => a - b)) {
    check(offset >= covered, `${quoted(name)} overlaps ${quoted(before)}`);
    covered = start + packedBytes;
    before = name;
  }
}

interface Directory {
  /** Offset in the file. */
  readonly start: number;
  readonly bytes: number;
  /** Number of members. */
  readonly count: number;
}

/** Resolves with the location of the directory, from the end record, which is at the file's end. */
async function findDirectory(file: FileHandle, size: number): Promise<Directory> {
  const tailBytes = Math.min(size, endBytes + maxCommentBytes);
  const tail = await part(file, size - tailBytes, tailBytes, 'its directory');
  let at = tail.length - endBytes;
  // Only the archive's comment follows the end record. It may contain any bytes, also the signature, so its length is
  // compared as well.
  const isEnd = (): boolean =>
    tail.readUInt32LE(at) === endSignature && at + endBytes + tail.readUInt16LE(at + 20) === tail.length;
  while (at >= 0 && !isEnd()) at--;
  check(at >= 0, 'it is not a zip archive, or is truncated');
  const endAt = size - tail.length + at;
  const narrow = {
    count: tail.readUInt16LE(at + 10),
    bytes: tail.readUInt32LE(at + 12),
    start: tail.readUInt32LE(at + 16),
  };
  const isWide = narrow.count === 0xffff || narrow.bytes === limit || narrow.start === limit;
  const found = (isWide ? await findWide(file, endAt) : null) ?? { ...narrow, end: endAt };
  const { start, bytes, end } = found;
  check(start + bytes <= end, 'its directory lies outside of the file');
  return found;
}

/**
 * Resolves with the location of the directory from the Zip64 end record, whose offset is `end`, or null if there is
 * none. `endAt` is the offset of the ordinary end record.
 */
async function findWide(file: FileHandle, endAt: number): Promise<(Directory & { end: number }) | null> {
  if (endAt < wideLocatorBytes) return null;
  const locator = await part(file, endAt - wideLocatorBytes, wideLocatorBytes, 'its directory');
  if (locator.readUInt32LE(0) !== wideLocatorSignature) return null;
  const at = wide(locator, 8);
  check(at + wideEndBytes <= endAt - wideLocatorBytes, 'its Zip64 directory lies outside of the file');
  const record = await part(file, at, wideEndBytes, 'its directory');
  check(record.readUInt32LE(0) === wideEndSignature, 'its Zip64 directory is damaged');
  return { count: wide(record, 32), bytes: wide(record, 40), start: wide(record, 48), end: at };
}

/**
 * Resolves with the members of an archive of `size` bytes. Rejects with FormatError if the archive is damaged, or if
 * its members together claim more than `maxBytes` unpacked bytes.
 */
export async function readZipDirectory(
  file: FileHandle,
  size: number,
  maxBytes: number,
): Promise<ZipMember[]> {
  const { start, bytes, count } = await findDirectory(file, size);
  const directory = await part(file, start, bytes, 'its directory');
  const members: [offset: number, member: ZipMember][] = [];
  const names = new Set<string>();
  let total = 0;
  let from = 0;
  for (; members.length < count; ) {
    const { listed, next } = parseListed(directory, from, size);
    check(!names.has(listed.name), `${quoted(listed.name)} is there twice`);
    names.add(listed.name);
    total += listed.bytes;
    members.push([listed.offset, await located(file, listed, start)]);
    from = next;
  }
  check(from === directory.length, `its directory has ${directory.length - from} bytes that no member has`);
  checkApart(members);
  checkZipBytes(total, maxBytes);
  return members.map(([, member]) => member);
}

/** Throws FormatError if `bytes`, the size of all arrays of an archive, is more than `maxBytes`. */
export function checkZipBytes(bytes: number, maxBytes: number): void {
  check(
    bytes <= maxBytes,
    `its arrays take ${bytes} bytes, more than maxBytes, ${maxBytes}; raise it if you trust the file`,
  );
}

async function* packedPieces(
  file: FileHandle,
  { name, start, packedBytes }: ZipMember,
): AsyncGenerator<Buffer> {
  for (let done = 0; done < packedBytes; done += pieceBytes)
    yield await part(file, start + done, Math.min(pieceBytes, packedBytes - done), quoted(name));
}

/**
 * Inflates a member. The buffers of small members are small, because an archive may have many of them. Throws
 * FormatError if zlib refuses the packed bytes.
 */
async function* inflated(packed: AsyncGenerator<Buffer>, { name, bytes }: ZipMember): AsyncGenerator<Buffer> {
  const inflate = createInflateRaw({ chunkSize: Math.min(pieceBytes, Math.max(64, bytes)) });
  // Errors of `packed` also destroy `inflate`, and the loop over `inflate` throws them.
  pipeline(Readable.from(packed), inflate, () => {});
  try {
    yield* inflate;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!code?.startsWith('Z_')) throw error;
    throw new FormatError(`${quoted(name)} is damaged: it cannot be inflated (${message})`, { cause: error });
  }
}

/**
 * Unpacks one member, piece by piece, never to more bytes than it claims. Its checksum is compared only after the last
 * piece. Throws FormatError if the member is damaged.
 */
export async function* readZipMember(file: FileHandle, member: ZipMember): AsyncGenerator<Buffer> {
  const { name, method, crc, bytes } = member;
  const packed = packedPieces(file, member);
  const pieces = method === stored ? packed : inflated(packed, member);
  let done = 0;
  let sum = 0;
  for await (const piece of pieces) {
    done += piece.length;
    check(
      done <= bytes,
      `${quoted(name)} is damaged: it unpacks to more than the ${bytes} bytes that it claims`,
    );
    sum = crc32(piece, sum);
    yield piece;
  }
  check(done === bytes, `${quoted(name)} is damaged: it unpacks to ${done} bytes, and claims ${bytes}`);
  check(sum === crc, `${quoted(name)} is damaged: its checksum (CRC-32) differs`);
}

const tooLarge = 'the archive would be larger than 4 GiB; use safetensors';

/** A member to be written. Its bytes are the pieces, one after the other. */
export interface ZipContent {
  /** Name of the file in the archive. */
  readonly name: string;
  /** The bytes of the file, in pieces. */
  readonly pieces: readonly Uint8Array[];
}

/** Returns the fields that the local header and the directory have in common, from the version on. */
function fields(name: Buffer, method: number, crc: number, packedBytes: number, bytes: number): Buffer {
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0);
  common.writeUInt16LE(flagUtf8, 2);
  common.writeUInt16LE(method, 4);
  common.writeUInt16LE(0x21, 8); // 1 January 1980, so that equal tensors give equal files
  common.writeUInt32LE(crc, 10);
  common.writeUInt32LE(packedBytes, 14);
  common.writeUInt32LE(bytes, 18);
  common.writeUInt16LE(name.length, 22);
  return common;
}

function signature(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/**
 * Resolves with an archive, as pieces to be written one after the other. With one version of zlib, equal contents give
 * equal archives. Rejects with FormatError for a name that is too long or is no text, and an archive that is too large.
 */
export async function encodeZip(contents: readonly ZipContent[], compress: boolean): Promise<Uint8Array[]> {
  const archive: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const { name, pieces } of contents) {
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const label = Buffer.from(name);
    // Half of a pair of surrogates would become U+FFFD, so that the archive would have another name, or one name twice.
    const isText = label.toString() === name;
    check(
      isText,
      `the name ${JSON.stringify(excerpt(name, 40))} has half a pair of surrogates, which UTF-8 lacks`,
    );
    check(label.length <= 0xffff, `the name "${name.slice(0, 40)}…" is too long`);
    const start = offset + localBytes + label.length;
    check(bytes < limit && start + (compress ? 0 : bytes) < limit, tooLarge);
    const crc = pieces.reduce((sum, piece) => crc32(piece, sum), 0);
    const packed = compress ? [await promisify(deflateRaw)(Buffer.concat(pieces))] : pieces;
    const packedBytes = packed.reduce((sum, piece) => sum + piece.length, 0);
    check(start + packedBytes < limit, tooLarge);
    const common = fields(label, compress ? deflated : stored, crc, packedBytes, bytes);
    const position = Buffer.alloc(14);
    position.writeUInt32LE(offset, 10);
    directory.push(signature(centralSignature), Buffer.from([20, 0]), common, position, label);
    archive.push(signature(localSignature), common, label, ...packed);
    offset = start + packedBytes;
  }
  const end = Buffer.alloc(endBytes);
  end.writeUInt32LE(endSignature);
  check(contents.length < 0xffff, 'an archive holds less than 65,535 tensors');
  end.writeUInt16LE(contents.length, 8);
  end.writeUInt16LE(contents.length, 10);
  end.writeUInt32LE(
    directory.reduce((sum, piece) => sum + piece.length, 0),
    12,
  );
  end.writeUInt32LE(offset, 16);
  return [...archive, ...directory, end];
}
