import { describe, expect, it } from 'vitest';
import { encodeZip, FormatError } from '../../src/index.ts';
import { zip } from '../support/zip-archive.ts';
import { readZip, withBytes } from '../support/zip-files.ts';

const load = (bytes: Uint8Array): Promise<Record<string, number[]>> =>
  withBytes(bytes, (path) => readZip(path, 2 ** 20));

describe('zip archives', () => {
  const contents = [
    { name: 'a', pieces: [Uint8Array.of(1, 2), Uint8Array.of(3)] },
    { name: 'ü/empty', pieces: [] },
    { name: 'c', pieces: [new Uint8Array(5000)] },
  ];

  it.each([false, true])('come back as they were written, deflated: %s', async (compress) => {
    const bytes = Buffer.concat(await encodeZip(contents, compress));
    expect(bytes.length < 5000).toBe(compress);
    expect(await load(bytes)).toEqual({ a: [1, 2, 3], 'ü/empty': [], c: Array<number>(5000).fill(0) });
    expect(Buffer.concat(await encodeZip(contents, compress))).toEqual(bytes);
  });

  it('are the same in every field as those that are made by hand', async () => {
    const part = { name: 'a', content: Buffer.of(1, 2), flags: 0x800 };
    const [bytes, want] = [
      Buffer.concat(await encodeZip([{ name: 'a', pieces: [part.content] }], false)),
      zip([part]),
    ];
    for (const at of [12, 33 + 14]) bytes.writeUInt16LE(0, at); // clear the dates, which the other archive lacks
    expect(bytes.equals(want)).toBe(true);
  });

  it('are refused with a name that is too long', async () => {
    const long = { name: 'x'.repeat(2 ** 16), pieces: [] };
    await expect(encodeZip([long], false)).rejects.toThrow(FormatError);
  });
});
