import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type IdxArray, readIdx, writeIdx } from '../../../src/formats/idx/index.ts';

let folder: string;
const at = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ringwise-idx-'));
});
afterEach(() => rm(folder, { recursive: true }));

const header = (type: number, ...sizes: number[]) => {
  const bytes = Buffer.alloc(4 + 4 * sizes.length);
  bytes[2] = type;
  bytes[3] = sizes.length;
  for (const [i, size] of sizes.entries()) bytes.writeUInt32BE(size, 4 + 4 * i);
  return bytes;
};

async function refusal(bytes: Buffer, options?: { maxBytes: number }): Promise<string> {
  await writeFile(at('file'), bytes);
  const error = (await readIdx(at('file'), options).catch((cause: unknown) => cause)) as Error & {
    code: string;
  };
  expect(error.code).toBe('ERR_DATA_IDX');
  expect(error.message).toContain(`(${at('file')})`);
  return error.message;
}

describe('readIdx and writeIdx', () => {
  const arrays: IdxArray[] = [
    Uint8Array.of(0, 1, 127, 128, 254, 255),
    Int8Array.of(-128, -1, 0, 1, 2, 127),
    Int16Array.of(-32768, -2, 0, 258, 3, 32767),
    Int32Array.of(-(2 ** 31), -1, 0, 16909060, 5, 2 ** 31 - 1),
    Float32Array.of(-1.5, 0, 2 ** -20, Number.NaN, Infinity, 3e38),
    Float64Array.of(-1.5, 0, Math.PI, Number.NaN, -Infinity, 1e300),
  ];
  for (const data of arrays) {
    for (const end of ['', '.gz']) {
      it(`round-trips ${data.constructor.name} through a file${end}`, async () => {
        await writeIdx(at(`a${end}`), { data, shape: [2, 3] });
        expect(await readIdx(at(`a${end}`))).toEqual({ data, shape: [2, 3] });
      });
    }
  }

  it('write big-endian bytes behind the documented header', async () => {
    await writeIdx(at('a'), { data: Int16Array.of(1, -2), shape: [2] });
    expect((await readFile(at('a'))).toString('hex')).toBe('00000b01000000020001fffe');
    await writeIdx(at('a.gz'), { data: Float32Array.of(1), shape: [] });
    expect(gunzipSync(await readFile(at('a.gz'))).toString('hex')).toBe('00000d003f800000');
  });

  it('recognise gzip by its bytes, not by its name', async () => {
    await writeFile(at('plain-name'), gzipSync(Buffer.concat([header(8, 2), Buffer.of(7, 8)])));
    expect(await readIdx(at('plain-name'))).toEqual({ data: Uint8Array.of(7, 8), shape: [2] });
  });

  it('take empty and large arrays', async () => {
    await writeIdx(at('empty'), { data: new Int32Array(0), shape: [0, 28, 28] });
    expect(await readIdx(at('empty'))).toEqual({ data: new Int32Array(0), shape: [0, 28, 28] });
    const data = Uint8Array.from({ length: 1_000_000 }, (_, i) => i % 251);
    await writeIdx(at('large.gz'), { data, shape: [1000, 1000] });
    expect(Buffer.compare((await readIdx(at('large.gz'))).data as Uint8Array, data)).toBe(0);
  });

  it('write a view of a part of its buffer', async () => {
    await writeIdx(at('a'), { data: Int32Array.of(9, 1, 2, 9).subarray(1, 3), shape: [2] });
    expect((await readIdx(at('a'))).data).toEqual(Int32Array.of(1, 2));
  });
});

describe('readIdx refuses', () => {
  it('a file that is no IDX file', async () => {
    expect(await refusal(Buffer.from('PNG?'))).toContain('not an IDX file; expected it to begin with 0000');
    expect(await refusal(Buffer.of(0, 0, 0x0a, 1, 0, 0, 0, 0))).toContain('got 00000a01');
    expect(await refusal(Buffer.of(0, 1, 8, 1, 0, 0, 0, 0))).toContain('got 00010801');
  });

  it('a truncated file, plain or compressed', async () => {
    expect(await refusal(Buffer.alloc(0))).toContain('truncated; expected 4 bytes for a header, got 0');
    expect(await refusal(header(8, 2, 3).subarray(0, 9))).toContain(
      'truncated; expected 12 bytes for a header, got 9',
    );
    const short = Buffer.concat([header(0x0b, 2, 3), Buffer.alloc(11)]);
    const message = 'truncated; expected 24 bytes for Int16Array [2, 3], got 23';
    expect(await refusal(short)).toContain(message);
    expect(await refusal(gzipSync(short))).toContain(message);
  });

  it('trailing bytes, plain or compressed', async () => {
    const long = Buffer.concat([header(8, 3), Buffer.alloc(4)]);
    expect(await refusal(long)).toContain('trailing bytes; expected 11 bytes for Uint8Array [3], got 12');
    expect(await refusal(gzipSync(long))).toContain(
      'trailing bytes; expected 11 bytes for Uint8Array [3], got 12',
    );
  });

  it('damaged or cut gzip data, with the cause', async () => {
    const bytes = gzipSync(
      Buffer.concat([header(8, 5000), Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * i) % 251))]),
    );
    expect(await refusal(bytes.subarray(0, 300))).toContain('gzip data is damaged or truncated');
    const damaged = Buffer.from(bytes);
    damaged[40]! ^= 0xff;
    damaged[bytes.length - 6]! ^= 0xff;
    expect(await refusal(damaged)).toContain('gzip data is damaged or truncated');
    const error = (await readIdx(at('file')).catch((cause: unknown) => cause)) as Error;
    expect(error.cause).toBeInstanceOf(Error);
  });

  it('more than 16 dimensions', async () => {
    expect(await refusal(header(8, ...new Array<number>(17).fill(1)))).toContain(
      'too many dimensions; expected at most 16, got 17',
    );
  });

  it('sizes whose product overflows', async () => {
    const most = 2 ** 32 - 1;
    expect(await refusal(header(0x0e, most, most, most))).toContain(
      `got a header for ${8n * BigInt(most) ** 3n + 16n}`,
    );
    // 2^64 elements are 0 modulo 2^64, which is the number of elements that the file has.
    expect(await refusal(header(8, 2 ** 31, 2 ** 31, 4))).toContain(
      'too large; expected at most 4294967296 bytes',
    );
  });

  it('more than maxBytes', async () => {
    const bytes = Buffer.concat([header(8, 100), Buffer.alloc(100)]);
    expect(await refusal(bytes, { maxBytes: 107 })).toContain(
      'expected at most 107 bytes (maxBytes), got a header for 108',
    );
    await writeFile(at('fits'), bytes);
    expect((await readIdx(at('fits'), { maxBytes: 108 })).shape).toEqual([100]);
  });

  it('a gzip bomb, long before it is inflated', async () => {
    const bomb = gzipSync(Buffer.concat([header(8, 10), Buffer.alloc(64 * 1024 * 1024)]));
    const before = process.memoryUsage().arrayBuffers;
    expect(await refusal(bomb)).toContain(
      'trailing bytes; expected 18 bytes for Uint8Array [10], got more from gzip',
    );
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
  });

  it('a missing file, with the error of the file system as the cause', async () => {
    const cause = { code: 'ENOENT' };
    await expect(readIdx(at('none'))).rejects.toMatchObject({ code: 'ERR_DATA_FILE', cause });
  });
});

describe('writeIdx refuses', () => {
  it.each([
    [
      { data: Uint16Array.of(1) as unknown as IdxArray, shape: [1] },
      'no IDX type; expected Uint8Array, Int8Array',
    ],
    [{ data: Uint8Array.of(1), shape: [2] }, 'shape and data differ; expected 2 elements for [2], got 1'],
    [{ data: Uint8Array.of(1), shape: [-1, -1] }, 'bad size; expected integers from 0 to 4294967295, got -1'],
    [
      { data: Uint8Array.of(1), shape: new Array<number>(17).fill(1) },
      'too many dimensions; expected at most 16, got 17',
    ],
  ])('%o', async (array, message) => {
    await expect(writeIdx(at('a'), array)).rejects.toMatchObject({
      code: 'ERR_DATA_IDX',
      message: expect.stringContaining(message),
    });
    await expect(readFile(at('a'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
