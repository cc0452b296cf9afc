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

  it('may have up to 4 GiB, and are refused beyond', async () => {
    const mebibyte = new Uint8Array(2 ** 20); // the same memory many times, so that the test needs little of it
    const content = (mebibytes: number) => [{ name: 'a', pieces: Array(mebibytes).fill(mebibyte) }];
    const archive = await encodeZip(content(2049), false);
    const directory = Buffer.concat(archive.slice(-6));
    expect(directory.readUInt32LE(0)).toBe(0x02014b50);
    expect([directory.readUInt32LE(20), directory.readUInt32LE(24)]).toEqual([
      2049 * 2 ** 20,
      2049 * 2 ** 20,
    ]);
    for (const contents of [content(4096), [...content(1), ...content(4095)]])
      await expect(encodeZip(contents, false)).rejects.toThrow('larger than 4 GiB; use safetensors');
  });

  it('are refused with a name that is too long', async () => {
    const long = { name: 'x'.repeat(2 ** 16), pieces: [] };
    await expect(encodeZip([long], false)).rejects.toThrow(FormatError);
  });

  it('are refused with a name that UTF-8 cannot store, which would come back as another one', async () => {
    const half = { name: 'a\ud800.npy', pieces: [] };
    const sentence = 'the name "a\\ud800.npy" has half a pair of surrogates, which UTF-8 lacks';
    await expect(encodeZip([half], false)).rejects.toThrow(sentence);
    expect(await load(Buffer.concat(await encodeZip([{ name: '😀', pieces: [] }], false)))).toEqual({
      '😀': [],
    });
  });
});
