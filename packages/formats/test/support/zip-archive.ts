// Writes zip archives field by field, so that a test can make each field wrong.
import { crc32 } from 'node:zlib';

export interface Part {
  readonly name: string;
  readonly content: Buffer;
  readonly packed?: Buffer;
  readonly method?: number;
  readonly flags?: number;
  readonly crc?: number;
  /** Fields of the headers, if they differ from the real member. */
  readonly bytes?: number;
  readonly packedBytes?: number;
  readonly offset?: number;
  readonly localName?: string;
  /** Extra field of the directory's entry. */
  readonly extra?: Buffer;
}

export interface End {
  readonly count?: number;
  readonly bytes?: number;
  readonly start?: number;
  readonly comment?: Buffer;
  /** Makes the bytes between the directory and the end record. */
  readonly between?: (start: number, bytes: number) => Buffer;
}

function fieldsOf(part: Part, name: string, extraBytes: number): Buffer {
  const { content, packed = content, method = 0, flags = 0 } = part;
  const fields = Buffer.alloc(26);
  fields.writeUInt16LE(20, 0);
  fields.writeUInt16LE(flags, 2);
  fields.writeUInt16LE(method, 4);
  fields.writeUInt32LE(part.crc ?? crc32(content), 10);
  fields.writeUInt32LE(part.packedBytes ?? packed.length, 14);
  fields.writeUInt32LE(part.bytes ?? content.length, 18);
  fields.writeUInt16LE(Buffer.byteLength(name), 22);
  fields.writeUInt16LE(extraBytes, 24);
  return fields;
}

/** Returns an archive. `local` are the members in order; `listed` are the entries of the directory. */
export function zip(
  local: readonly Part[],
  { listed = local, ...end }: End & { listed?: readonly Part[] } = {},
): Buffer {
  const locals: Buffer[] = [];
  const offsets: number[] = [];
  let position = 0;
  for (const part of local) {
    const name = part.localName ?? part.name;
    // biome-ignore format: one thing
    const pieces = [Buffer.from('PK\x03\x04', 'latin1'), fieldsOf(part, name, 0), Buffer.from(name), part.packed ?? part.content];
    offsets.push(position);
    for (const { length } of pieces) position += length;
    locals.push(...pieces);
  }
  const directory = listed.flatMap((part, i) => {
    const { extra = Buffer.alloc(0) } = part;
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(part.offset ?? offsets[i] ?? 0, 10);
    const version = Buffer.from('PK\x01\x02\x14\0', 'latin1');
    return [version, fieldsOf(part, part.name, extra.length), rest, Buffer.from(part.name), extra];
  });
  const bytes = directory.reduce((sum, { length }) => sum + length, 0);
  const { comment = Buffer.alloc(0) } = end;
  const tail = Buffer.alloc(22);
  tail.write('PK\x05\x06', 'latin1');
  tail.writeUInt16LE(end.count ?? listed.length, 8);
  tail.writeUInt16LE(end.count ?? listed.length, 10);
  tail.writeUInt32LE(end.bytes ?? bytes, 12);
  tail.writeUInt32LE(end.start ?? position, 16);
  tail.writeUInt16LE(comment.length, 20);
  const between = end.between?.(position, bytes) ?? Buffer.alloc(0);
  return Buffer.concat([...locals, ...directory, between, tail, comment]);
}

/** Returns the Zip64 end record with these fields, and a locator that says that the record begins at `at`. */
export function wideEnd(count: number, bytes: number, start: number, at = start + bytes): Buffer {
  const record = Buffer.alloc(56);
  record.write('PK\x06\x06', 'latin1');
  record.writeBigUInt64LE(44n, 4);
  record.writeBigUInt64LE(BigInt(count), 24);
  record.writeBigUInt64LE(BigInt(count), 32);
  record.writeBigUInt64LE(BigInt(bytes), 40);
  record.writeBigUInt64LE(BigInt(start), 48);
  const locator = Buffer.alloc(20);
  locator.write('PK\x06\x07', 'latin1');
  locator.writeBigUInt64LE(BigInt(at), 8);
  locator.writeUInt32LE(1, 16);
  return Buffer.concat([record, locator]);
}

/** Returns a Zip64 extra field, which holds the sizes of a member of 4 GiB or more. */
export function wideExtra(...sizes: readonly number[]): Buffer {
  const extra = Buffer.alloc(4 + 8 * sizes.length);
  extra.writeUInt16LE(1, 0);
  extra.writeUInt16LE(8 * sizes.length, 2);
  for (const [i, size] of sizes.entries()) extra.writeBigUInt64LE(BigInt(size), 4 + 8 * i);
  return extra;
}
