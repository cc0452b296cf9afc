// Zip archives as far as .npz needs them: members stored or deflated, no encryption, less than 4 GiB in all. The directory
// at the end says what there is; it comes from outside and is checked before memory is taken.
import type { FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import { crc32, deflateRaw, inflateRaw } from 'node:zlib';
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
/** From here on sizes take another form (Zip64). */
const limit = 0xffffffff;

export interface Member {
  readonly name: string;
  readonly method: number;
  readonly crc: number;
  readonly packedBytes: number;
  readonly bytes: number;
  /** Where its local header begins. */
  readonly offset: number;
}

async function part(file: FileHandle, position: number, bytes: number, what: string): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  check(await readFully(file, buffer, position), `it ends inside ${what}`);
  return buffer;
}

function parseMember(directory: Buffer, at: number, fileBytes: number): { member: Member; next: number } {
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
  return { member: { name, method, crc, packedBytes, bytes, offset }, next };
}

/** What is in an archive. */
export async function readDirectory(file: FileHandle): Promise<Member[]> {
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
  const members: Member[] = [];
  for (let i = 0, from = 0; i < count; i++) {
    const { member, next } = parseMember(directory, from, size);
    members.push(member);
    from = next;
  }
  return members;
}

/** The unpacked bytes of one member. */
export async function readMember(file: FileHandle, member: Member): Promise<Buffer> {
  const { name, method, crc, packedBytes, bytes, offset } = member;
  const header = await part(file, offset, localBytes, `"${name}"`);
  check(header.readUInt32LE(0) === localSignature, `"${name}" does not begin where the directory says`);
  const start = offset + localBytes + header.readUInt16LE(26) + header.readUInt16LE(28);
  const packed = await part(file, start, packedBytes, `"${name}"`);
  const content =
    method === stored ? packed : await promisify(inflateRaw)(packed, { maxOutputLength: Math.max(1, bytes) });
  check(content.length === bytes && crc32(content) === crc, `"${name}" is damaged`);
  return content;
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
