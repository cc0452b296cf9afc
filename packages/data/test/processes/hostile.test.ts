// Files that state wrong sizes, and paths that are no files, are refused before memory is allocated for them.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, gzipSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CsvFile } from '../../src/formats/csv/index.ts';
import { readIdx } from '../../src/formats/idx/index.ts';
import { ImageFolder } from '../../src/formats/images/index.ts';
import { JsonLinesFile, jsonLines } from '../../src/formats/json/index.ts';
import { NpyFile } from '../../src/formats/npy/index.ts';
import { ParquetFile } from '../../src/formats/parquet/index.ts';
import { SafetensorsFile } from '../../src/formats/safetensors/index.ts';
import { TarFile, tarSamples } from '../../src/formats/tar/index.ts';
import { TokenFile } from '../../src/formats/tokens/index.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hostile-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, bytes: Uint8Array | string): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

/**
 * Returns the message of an ERR_DATA_FILE and checks that it took less than 128 MiB of memory. Pieces of a file that
 * the collector has not freed yet are a part of them: 50 MiB on Node 26.
 */
async function refusal(read: () => unknown): Promise<string> {
  const { arrayBuffers } = process.memoryUsage();
  let error: unknown;
  try {
    await read();
  } catch (reason) {
    error = reason;
  }
  expect(error).toMatchObject({ code: 'ERR_DATA_FILE' });
  expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(2 ** 27);
  return (error as Error).message;
}

async function last<T>(items: AsyncIterable<T> | Iterable<T>): Promise<T | undefined> {
  let item: T | undefined;
  for await (const next of items) item = next;
  return item;
}

function safetensors(header: object, bytes: number): string {
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return write('lie.safetensors', Buffer.concat([length, text, Buffer.alloc(bytes)]));
}

/** Returns the header of a file in a tar archive. */
function tarHeader(name: string, size: number, type = '0'): Buffer {
  const header = Buffer.alloc(512);
  header.write(name);
  header.write('0000644\0', 100);
  header.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  header.write('        ', 148);
  header.write(type, 156);
  header.write('ustar\x0000', 257, 'latin1');
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  return header;
}

describe('sizes that are not true', () => {
  const tensor = (dtype: string, shape: readonly number[], from: number, to: number): object => ({
    ...{ dtype, shape, data_offsets: [from, to] },
  });

  it.each([
    ['overlap', { x: tensor('U8', [4], 0, 4), y: tensor('U8', [4], 0, 4) }, 4, '"y" at byte'],
    ['leave a gap', { x: tensor('U8', [4], 0, 4), y: tensor('U8', [4], 8, 12) }, 12, '"y" at byte'],
    ['begin late', { x: tensor('U8', [4], 4, 8) }, 8, '"x" at byte'],
    ['end early', { x: tensor('U8', [4], 0, 4) }, 8, 'the end of the last tensor'],
    ['have more elements than can be', { x: tensor('U8', [2 ** 52, 2 ** 52], 0, 8) }, 8, 'a range of 2.02'],
    ['have the type of a method', { x: tensor('toString', [4], 0, 4) }, 4, 'for "x", got toString'],
    ['have no object', { x: 5 }, 4, 'for "x", got 5'],
  ])('tensors of safetensors that %s', async (_, header, bytes, what) => {
    expect(await refusal(() => new SafetensorsFile(safetensors(header, bytes)))).toContain(what);
  });

  it('an array of npy that is larger than its file, whatever its sizes multiply to', async () => {
    for (const shape of ['(9007199254740991,)', '(4294967296, 4294967296)', '(2, 9007199254740991)']) {
      const text = `{'descr': '<f8', 'fortran_order': False, 'shape': ${shape}, }`.padEnd(117);
      const start = Buffer.from('\x93NUMPY\x01\0\x76\0', 'latin1');
      const path = write('lie.npy', Buffer.concat([start, Buffer.from(`${text}\n`), Buffer.alloc(16)]));
      expect(await refusal(() => new NpyFile(path))).toContain('bytes for <f8');
    }
  });

  it('a block of tokens that is larger than the file', async () => {
    const path = write('few.bin', Buffer.alloc(64));
    for (const dtype of ['uint16', 'uint32'] as const)
      expect(await refusal(() => new TokenFile(path, { block: 2 ** 31 - 1, dtype }))).toContain(
        'Take a smaller block',
      );
  });

  it('a file of an archive that is larger than the archive', async () => {
    const path = write('lie.tar', Buffer.concat([tarHeader('a.txt', 8 * 2 ** 30 - 1), Buffer.alloc(1024)]));
    expect(await refusal(() => new TarFile(path))).toContain('the archive is cut off');
  });

  it('a file of a compressed archive that is larger than a sample may be, before it is unpacked', async () => {
    const bomb = gzipSync(Buffer.concat([tarHeader('a.txt', 8 * 2 ** 30 - 1), Buffer.alloc(2 ** 26)]));
    expect(bomb.length).toBeLessThan(100_000);
    const path = write('bomb.tar.gz', bomb);
    const what = 'a sample is too large; expected at most 1073741824 bytes (maxSampleBytes), got 8589935108';
    expect(await refusal(() => last(tarSamples([path])))).toContain(what);
  });

  it('files of one sample that are together larger than a sample may be', async () => {
    const files = [1, 2, 3].flatMap((i) => [tarHeader(`a.${i}`, 512), Buffer.alloc(512, `${i}`)]);
    const path = write('many.tar', Buffer.concat([...files, Buffer.alloc(1024)]));
    expect(await refusal(() => last(tarSamples([path], { maxSampleBytes: 3000 })))).toContain('got 3081');
    expect(Object.keys((await last(tarSamples([path], { maxSampleBytes: 3081 })))!.files)).toHaveLength(3);
  });

  it('a line that is longer than any string', async () => {
    const path = write('one.jsonl', '[1,\n'.slice(0, 3));
    truncateSync(path, 2 ** 29 + 2 ** 20); // a hole, which takes no space on the disk
    using file = new JsonLinesFile(path);
    expect(await refusal(() => file.get(0))).toContain(`a line is too long; expected at most`);
    expect(await refusal(() => last(jsonLines(path)))).toContain(`(${path}:1)`);
    expect(await refusal(() => CsvFile.open(path, { columns: { x: 'string' } }))).toContain(
      'a line is too long',
    );
  });

  it('lines over several chunks are read whole', async () => {
    const values = ['a'.repeat(300_000), 'b'.repeat(700_000), 'c', 'd'.repeat(600_000)];
    const path = write('long.jsonl', values.map((value) => JSON.stringify(value)).join('\n'));
    expect([...jsonLines(path)]).toEqual(values);
    using file = new JsonLinesFile(path);
    expect([1, 3].map((i) => file.get(i))).toEqual([values[1], values[3]]);
  });

  it('a row group of Parquet that is larger than allowed', async () => {
    const columnData = [
      { name: 'x', data: Float64Array.from({ length: 5000 }), type: 'DOUBLE' as const },
      { name: 'y', data: Float64Array.from({ length: 5000 }), type: 'DOUBLE' as const },
    ];
    const path = write('large.parquet', new Uint8Array(parquetWriteBuffer({ columnData })));
    const open = (maxGroupBytes: number, columns?: string[]): Promise<ParquetFile> =>
      ParquetFile.open(path, { maxGroupBytes, ...(columns && { columns }) });
    expect(await refusal(() => open(50_000))).toContain(
      'expected at most 50000 bytes (maxGroupBytes), got 64000',
    );
    (await open(50_000, ['x'])).close();
    (await open(64_000)).close();
  });

  it('a page of Parquet that claims more than its bytes can become', async () => {
    const columnData = [
      {
        name: 'x',
        data: Float64Array.from({ length: 5000 }, (_, i) => Math.sin(i)),
        type: 'DOUBLE' as const,
      },
    ];
    const lie = parquetWriteBuffer({
      columnData,
      codec: 'SNAPPY',
      compressors: { SNAPPY: () => new Uint8Array(4) },
    });
    using file = await ParquetFile.open(write('lie.parquet', new Uint8Array(lie)));
    expect(await refusal(() => file.get(0))).toContain('one that claims 8000');
  });

  it('a picture with more pixels than the decoder takes', async () => {
    mkdirSync(join(folder, 'pictures/one'), { recursive: true });
    const header = Buffer.from('89504e470d0a1a0a0000000d494844520000ea600000ea600802000000', 'hex'); // 60,000 × 60,000
    const crc = Buffer.alloc(4);
    crc.writeUInt32BE(crc32(header.subarray(12)));
    write('pictures/one/a.png', Buffer.concat([header, crc]));
    const pictures = await ImageFolder.open(join(folder, 'pictures'), { height: 8, width: 8 });
    expect(await refusal(() => pictures.get(0))).toContain('cannot decode');
  });
});

describe('a path that is no regular file', () => {
  const readers: Readonly<Record<string, (path: string) => unknown>> = {
    npy: (path) => new NpyFile(path),
    safetensors: (path) => new SafetensorsFile(path),
    tokens: (path) => new TokenFile(path, { block: 1 }),
    'JSON lines': (path) => new JsonLinesFile(path),
    tar: (path) => new TarFile(path),
    idx: (path) => readIdx(path),
    csv: (path) => CsvFile.open(path, { columns: {} }),
    parquet: (path) => ParquetFile.open(path),
  };

  it.each(Object.keys(readers))('is refused by %s', async (kind) => {
    const pipe = join(folder, `pipe ${kind}`);
    execFileSync('mkfifo', [pipe]);
    for (const path of [pipe, '/dev/zero', folder])
      expect(await refusal(() => readers[kind]!(path))).toContain(
        `expected a regular file, got a folder, a pipe or`,
      );
  });
});
