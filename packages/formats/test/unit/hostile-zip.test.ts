// Readers refuse archives that were made to exhaust memory, to be read for ever, or to be mistaken for others.
import { truncateSync } from 'node:fs';
import { deflateRawSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { FormatError } from '../../src/index.ts';
import { type Part, wideEnd, wideExtra, zip } from '../support/zip-archive.ts';
import { readZip, withBytes } from '../support/zip-files.ts';

/** Returns the message of a refusal and checks that it took less than 16 MiB of memory. */
async function refusal(read: () => Promise<unknown>): Promise<string> {
  const { arrayBuffers } = process.memoryUsage();
  const error = await read().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(FormatError);
  expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(2 ** 24);
  return (error as Error).message;
}

const small = Buffer.of(1, 2);
const deflated = (name: string, content: Buffer): Part => ({
  ...{ name, content, packed: deflateRawSync(content), method: 8 },
});
const load = (bytes: Buffer, maxBytes = 2 ** 32): Promise<Record<string, number[]>> =>
  withBytes(bytes, (path) => readZip(path, maxBytes));
const refused = (bytes: Buffer, maxBytes?: number): Promise<string> => refusal(() => load(bytes, maxBytes));

describe('an archive that lies', () => {
  test('members whose bytes are another member with its header are refused', async () => {
    // As in Fifield's zip bomb, the bytes of the first member are the local header and the bytes of the second.
    const inner = { name: 'b.npy', content: small };
    const quoted = zip([inner]).subarray(0, 30 + 5 + small.length);
    const outer = { name: 'a.npy', content: Buffer.from(quoted) };
    const offset = 30 + 5 + outer.content.length - quoted.length;
    const bytes = zip([outer], { listed: [outer, { ...inner, offset }] });
    expect(await refused(bytes)).toContain('"b.npy" overlaps "a.npy"');
    const other = zip([outer], {
      listed: [
        { ...inner, offset },
        { ...outer, offset: 0 },
      ],
    });
    expect(await refused(other)).toContain('"b.npy" overlaps "a.npy"');
  });

  test('a member that lies in the directory, or behind it, is refused', async () => {
    const good = { name: 'a.npy', content: small };
    const { length } = zip([good]);
    const directory = 30 + 5 + small.length;
    const hidden = zip([good], { listed: [good, { ...good, name: 'b.npy', offset: directory }] });
    expect(await refused(hidden)).toMatch(/"b.npy" (reaches into the directory|lies outside)/);
    const behind = zip([good], { listed: [{ ...good, offset: length - 30 }] });
    expect(await refused(behind)).toMatch(/"a.npy" (reaches into the directory|lies outside)/);
  });

  test('a directory that reaches into its end is refused, and so is one with bytes or members too many', async () => {
    const good = { name: 'a.npy', content: small };
    expect(await refused(zip([good], { bytes: 70 }))).toContain('its directory lies outside of the file');
    expect(await refused(zip([good], { start: 0xfffffff0 }))).toContain('its directory lies outside');
    expect(await refused(zip([good, { ...good, name: 'b.npy' }], { count: 1 }))).toContain(
      'its directory has 51 bytes that no member has',
    );
    expect(await refused(zip([good], { count: 2 }))).toContain('its directory is damaged');
  });

  test('a comment is no directory, whatever it says', async () => {
    const good = { name: 'a.npy', content: small };
    const fake = zip([{ name: 'b.npy', content: small }]).subarray(-22);
    expect(await load(zip([good], { comment: Buffer.concat([fake, Buffer.alloc(3)]) }))).toEqual({
      'a.npy': [1, 2],
    });
    expect(await refused(Buffer.concat([zip([good]), Buffer.alloc(1)]))).toContain('it is not a zip archive');
  });

  test('a name that is there twice, or that is another one where the member begins, is refused', async () => {
    const good = { name: 'a.npy', content: small };
    expect(await refused(zip([good, good]))).toContain('"a.npy" is there twice');
    expect(await refused(zip([{ ...good, localName: 'b.npy' }]))).toContain('another name where it begins');
    expect(await refused(zip([{ ...good, localName: 'a.npy2' }]))).toContain('another name where it begins');
  });

  test('encrypted members, and methods other than deflate, are refused', async () => {
    const good = { name: 'a.npy', content: small };
    expect(await refused(zip([{ ...good, flags: 1 }]))).toContain(
      '"a.npy" is encrypted, which is not supported',
    );
    for (const method of [1, 9, 12, 14, 93, 99])
      expect(await refused(zip([{ ...good, method }]))).toContain(
        `is packed by method ${method}; expected 0 or 8`,
      );
  });

  test('a checksum that differs is damage, whether stored or deflated', async () => {
    for (const member of [{ name: 'a.npy', content: small }, deflated('a.npy', small)])
      expect(await refused(zip([{ ...member, crc: 1 }]))).toBe(
        '"a.npy" is damaged: its checksum (CRC-32) differs',
      );
  });

  test('bytes that cannot be inflated are damage', async () => {
    const damaged = { ...deflated('a.npy', small), packed: Buffer.alloc(small.length, 0xff) };
    expect(await refused(zip([damaged]))).toContain('"a.npy" is damaged: it cannot be inflated (invalid');
  });

  test('fewer bytes than claimed, more than claimed, and more than the packed bytes can become', async () => {
    const less = { ...deflated('a.npy', Buffer.alloc(1000)), bytes: 2000 };
    expect(await refused(zip([less]))).toContain('it unpacks to 1000 bytes, and claims 2000');
    const stored = { name: 'a.npy', content: small, bytes: 10_000 };
    expect(await refused(zip([stored]))).toContain(`"a.npy" cannot have 10000 bytes, as ${small.length}`);
    const ratio = { ...deflated('a.npy', small), bytes: 2 ** 31 };
    expect(await refused(zip([ratio]))).toContain('cannot have 2147483648 bytes');
  });

  test('many members that are 5 GiB together are refused before the first is unpacked, unless maxBytes allows', async () => {
    const chunk = deflateRawSync(Buffer.alloc(2 ** 22));
    const huge = 2 ** 22 * 64;
    // The data is one chunk 64 times. The first chunk ends the deflate stream, so the size in the header is false.
    const claim = { packed: Buffer.concat(Array.from({ length: 64 }, () => chunk)), method: 8, bytes: huge };
    const members = Array.from({ length: 20 }, (_, i) => ({ name: `${i}.npy`, content: small, ...claim }));
    const bytes = zip(members);
    expect(bytes.length).toBeLessThan(2 ** 23);
    const problem = 'its arrays take 5368709120 bytes, more than maxBytes, 4294967296; raise it if you trust';
    expect(await refused(bytes)).toContain(problem);
    expect(await refused(bytes, 2 ** 33)).not.toContain('maxBytes');
  });

  test('Zip64 fields are read if they are there, and checked like all others', async () => {
    const content = small;
    const wide = { ...{ name: 'a.npy', content }, bytes: 0xffffffff, packedBytes: 0xffffffff };
    const extra = wideExtra(content.length, content.length);
    const local = [{ name: 'a.npy', content }];
    expect(await load(zip(local, { listed: [{ ...wide, extra }] }))).toEqual({ 'a.npy': [1, 2] });
    const end = { count: 0xffff, bytes: 0xffffffff, start: 0xffffffff };
    const between = (start: number, bytes: number): Buffer => wideEnd(1, bytes, start);
    expect(await load(zip(local, { ...end, between }))).toEqual({ 'a.npy': [1, 2] });
    expect(await refused(zip(local, { listed: [wide] }))).toContain('"a.npy" lies outside of the file');
    expect(await refused(zip(local, { listed: [{ ...wide, extra: wideExtra(5) }] }))).toContain(
      'are damaged',
    );
    expect(
      await refused(zip(local, { listed: [{ ...wide, extra: wideExtra(2 ** 50, 2 ** 50) }] })),
    ).toContain('"a.npy" lies outside of the file');
    expect(await refused(zip(local, end))).toContain('its directory');
    const lies: ((start: number, bytes: number) => Buffer)[] = [
      (start, bytes) => wideEnd(1, bytes, 2 ** 50, start + bytes),
      (start) => wideEnd(1, 2 ** 50, start, start + 51),
      (start, bytes) => wideEnd(2 ** 50, bytes, start),
      (start, bytes) => wideEnd(1, bytes, start, 2 ** 50),
      (start, bytes) => wideEnd(1, bytes, start, start),
    ];
    for (const lie of lies)
      expect(await refused(zip(local, { ...end, between: lie }))).toContain('directory');
  });

  test('a file of holes takes no memory', async () => {
    const sparse = async (path: string): Promise<unknown> => {
      truncateSync(path, 2 ** 40);
      return readZip(path, 2 ** 32);
    };
    expect(await refusal(() => withBytes(Buffer.of(), sparse))).toContain('is not a zip archive');
  });
});
