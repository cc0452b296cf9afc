// Zip archives as far as .npz needs them: members stored or deflated, no encryption, less than 4 GiB in all. The directory
// at the end says what there is; it comes from outside and is checked before memory is taken.
import type { FileHandle } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { crc32, createInflateRaw, deflateRaw } from 'node:zlib';
import { readFully } from '../files.ts';
import { check } from './header.ts';

const localSignature = 0x04034b50;
const centralSignature = 0x02014b50;
const endSignature = 0x06054b50;
const localBytes = 30;
const centralBytes = 46;
const endBytes = 22;
const maxCommentBytes = 0xffff;
/** Deflate makes at most this many bytes of one. */
const maxRatio = 1032;
const stored = 0;
const deflated = 8;
const flagUtf8 = 0x800;
/** One read of packed bytes. */
const pieceBytes = 2 ** 20;
/** From here on sizes take another form (Zip64). */
const limit = 0xffffffff;

export interface Member {
  readonly name: string;
  readonly method: number;
  readonly crc: number;
  readonly packedBytes: number;
  readonly bytes: number;
  /** Where its packed bytes begin. */
  readonly start: number;
}

/** What the directory says of a member. */
interface Listed extends Omit<Member, 'start'> {
  /** Where its local header begins. */
  readonly offset: number;
}

async function part(file: FileHandle, position: number, bytes: number, what: string): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  check(await readFully(file, buffer, position), `it ends inside ${what}`);
  return buffer;
}

function parseListed(directory: Buffer, at: number, fileBytes: number): { listed: Listed; next: number } {
  const isHere = at + centralBytes <= directory.length && directory.readUInt32LE(at) === centralSignature;
  check(isHere, 'its directory is damaged');
  const nameEnd = at + centralBytes + directory.readUInt16LE(at + 28);
  const next = nameEnd + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
  check(next <= directory.length, 'its directory is damaged');
  const name = directory.toString('utf8', at + centralBytes, nameEnd);
  const [crc, packedBytes, bytes] = [16, 20, 24].map((i) => directory.readUInt32LE(at + i)) as [
    number,
    number,
    number,
  ];
  const offset = directory.readUInt32LE(at + 42);
  const method = directory.readUInt16LE(at + 10);
  check(
    bytes < limit && packedBytes < limit && offset < limit,
    `"${name}" is larger than 4 GiB, which is not supported`,
  );
  check((directory.readUInt16LE(at + 8) & 1) === 0, `"${name}" is encrypted`);
  check(method === stored || method === deflated, `"${name}" is packed by method ${method}; expected 0 or 8`);
  check(offset + localBytes + packedBytes <= fileBytes, `"${name}" lies outside of the file`);
  const isPossible = method === stored ? bytes === packedBytes : bytes <= maxRatio * packedBytes;
  check(isPossible, `"${name}" cannot have ${bytes} bytes, as ${packedBytes} are in the file`);
  return { listed: { name, method, crc, packedBytes, bytes, offset }, next };
}

/** A member with the place of its bytes, which its local header tells. `end`: where the directory begins. */
async function located(file: FileHandle, { offset, ...listed }: Listed, end: number): Promise<Member> {
  const { name, packedBytes } = listed;
  const header = await part(file, offset, localBytes, `"${name}"`);
  check(header.readUInt32LE(0) === localSignature, `"${name}" does not begin where the directory says`);
  const start = offset + localBytes + header.readUInt16LE(26) + header.readUInt16LE(28);
  check(start + packedBytes <= end, `"${name}" reaches into the directory`);
  return { ...listed, start };
}

/** Members must not share bytes: a small file could else be unpacked any number of times. */
function checkApart(members: readonly (readonly [offset: number, member: Member])[]): void {
  let covered = 0;
  let before = '';
  for (const [offset, { name, start, packedBytes }] of members.toSorted(([a], [b]) => a - b)) {
    check(offset >= covered, `"${name}" overlaps "${before}"`);
    covered = start + packedBytes;
    before = name;
  }
}

/** What is in an archive. Unpacked, its members must not take more than `maxBytes` together. */
export async function readDirectory(file: FileHandle, maxBytes: number): Promise<Member[]> {
  const { size } = await file.stat();
  const tail = Math.min(size, endBytes + maxCommentBytes);
  const end = await part(file, size - tail, tail, 'its directory');
  let at = end.length - endBytes;
  while (at >= 0 && end.readUInt32LE(at) !== endSignature) at--;
  check(at >= 0, 'it is not a zip archive, or is truncated');
  const count = end.readUInt16LE(at + 10);
  const bytes = end.readUInt32LE(at + 12);
  const start = end.readUInt32LE(at + 16);
  check(start < limit && count < 0xffff, 'it is larger than 4 GiB, which is not supported');
  check(start + bytes <= size, 'its directory lies outside of the file');
  const directory = await part(file, start, bytes, 'its directory');
  const members: [offset: number, member: Member][] = [];
  const names = new Set<string>();
  let total = 0;
  for (let i = 0, from = 0; i < count; i++) {
    const { listed, next } = parseListed(directory, from, size);
    check(!names.has(listed.name), `"${listed.name}" is there twice`);
    names.add(listed.name);
    total += listed.bytes;
    members.push([listed.offset, await located(file, listed, start)]);
    from = next;
  }
  checkApart(members);
  check(
    total <= maxBytes,
    `its arrays take ${total} bytes, more than maxBytes, ${maxBytes}; raise it if you trust the file`,
  );
  return members.map(([, member]) => member);
}

async function* packedPieces(file: FileHandle, { name, start, packedBytes }: Member): AsyncGenerator<Buffer> {
  for (let done = 0; done < packedBytes; done += pieceBytes)
    yield await part(file, start + done, Math.min(pieceBytes, packedBytes - done), `"${name}"`);
}

/** In pieces of at most `bytes`, as the many small arrays of an archive need no large ones. */
function inflated(packed: AsyncGenerator<Buffer>, bytes: number): AsyncIterable<Buffer> {
  const inflate = createInflateRaw({ chunkSize: Math.min(pieceBytes, Math.max(64, bytes)) });
  // The loop over what comes out gets the errors of all.
  pipeline(Readable.from(packed), inflate, () => {});
  return inflate;
}

/** The unpacked bytes of one member, piece by piece, never more than it claims. Whether they are right shows at the end. */
export async function* readMember(file: FileHandle, member: Member): AsyncGenerator<Buffer> {
  const { name, method, crc, bytes } = member;
  const packed = packedPieces(file, member);
  const pieces = method === stored ? packed : inflated(packed, bytes);
  let done = 0;
  let sum = 0;
  for await (const piece of pieces) {
    done += piece.length;
    check(done <= bytes, `"${name}" is damaged`);
    sum = crc32(piece, sum);
    yield piece;
  }
  check(done === bytes && sum === crc, `"${name}" is damaged`);
}

/** A member as it is written: its bytes in pieces. */
export interface Content {
  readonly name: string;
  readonly pieces: readonly Uint8Array[];
}

/** The fields that local header and directory have in common, from the version on. */
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

/** An archive, piece by piece. */
export async function encodeArchive(contents: readonly Content[], compress: boolean): Promise<Uint8Array[]> {
  const archive: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const { name, pieces } of contents) {
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const crc = pieces.reduce((sum, piece) => crc32(piece, sum), 0);
    const packed = compress ? [await promisify(deflateRaw)(Buffer.concat(pieces))] : pieces;
    const packedBytes = packed.reduce((sum, piece) => sum + piece.length, 0);
    const label = Buffer.from(name);
    check(label.length <= 0xffff, `the name "${name.slice(0, 40)}…" is too long`);
    check(offset + packedBytes + bytes < limit, 'the archive would be larger than 4 GiB; use safetensors');
    const common = fields(label, compress ? deflated : stored, crc, packedBytes, bytes);
    const position = Buffer.alloc(14);
    position.writeUInt32LE(offset, 10);
    directory.push(signature(centralSignature), Buffer.from([20, 0]), common, position, label);
    archive.push(signature(localSignature), common, label, ...packed);
    offset += localBytes + label.length + packedBytes;
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
