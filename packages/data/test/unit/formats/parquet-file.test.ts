import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compressors } from 'hyparquet-compressors';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ParquetFile } from '../../../src/formats/parquet/index.ts';
import { BlockRandomSampler, DataLoader, shard } from '../../../src/index.ts';

let folder: string;
let path: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parquet-'));
  path = join(folder, 'rows.parquet');
  writeRows(path);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Row {
  readonly id: number;
  readonly big: bigint;
  readonly x: number;
  readonly text: string;
}

const rowAt = (i: number): Row => ({ id: i, big: BigInt(i) * 2n ** 40n, x: i / 8, text: `row ${i} ä` });
const rows = Array.from({ length: 23 }, (_, i) => rowAt(i));

/** Writes 23 rows in groups of 5, 5, 5, 5 and 3. */
function writeRows(target: string, codec: 'SNAPPY' | 'UNCOMPRESSED' = 'SNAPPY'): void {
  const file = parquetWriteBuffer({
    columnData: [
      { name: 'id', data: rows.map(({ id }) => id), type: 'INT32' },
      { name: 'big', data: rows.map(({ big }) => big), type: 'INT64' },
      { name: 'x', data: rows.map(({ x }) => x), type: 'DOUBLE' },
      { name: 'text', data: rows.map(({ text }) => text), type: 'STRING' },
    ],
    rowGroupSize: 5,
    codec,
  });
  writeFileSync(target, Buffer.from(file));
}

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of stream) all.push(item);
  return all;
}

describe('ParquetFile', () => {
  it('gives every row by number, across row groups and with few of them in memory', async () => {
    using file = await ParquetFile.open<Row>(path, { cachedGroups: 1 });
    expect([file.length, file.groupLengths]).toEqual([23, [5, 5, 5, 5, 3]]);
    expect(file.columns).toEqual(['id', 'big', 'x', 'text']);
    for (const i of [0, 4, 5, 22, 9, 10, 0]) expect(await file.get(i)).toEqual(rows[i]);
    expect(await Promise.all(rows.map((_, i) => file.get(22 - i)))).toEqual([...rows].reverse());
  });

  it('gives rows that may be changed, although it keeps the group', async () => {
    const nested = join(folder, 'nested.parquet');
    const columnData = [
      { name: 'x', data: [1, 2], type: 'DOUBLE' as const },
      { name: 'list', data: [[1, { a: 2 }], []], type: 'JSON' as const },
    ];
    writeFileSync(nested, Buffer.from(parquetWriteBuffer({ columnData })));
    using file = await ParquetFile.open<{ x: number; list: unknown[] }>(nested);
    for (const row of [await file.get(0), ...(await collect(file.rows()))]) {
      row.x *= 10;
      row.list.push('more');
    }
    expect(await collect(file.rows())).toEqual([
      { x: 1, list: [1, { a: 2 }] },
      { x: 2, list: [] },
    ]);
    expect(await file.get(1)).toEqual({ x: 2, list: [] });
  });

  it('says of a file that was closed that it is closed, not that it is damaged', async () => {
    const file = await ParquetFile.open<Row>(path);
    file.close();
    await expect(file.get(0)).rejects.toMatchObject({
      code: 'ERR_DATA_FILE',
      message: `read: the file was closed (${path}). Keep it open while a loader uses it.`,
    });
  });

  it('reads the columns that are asked for, and feeds a loader', async () => {
    using file = await ParquetFile.open<Pick<Row, 'big' | 'x'>>(path, { columns: ['x', 'big'] });
    expect(await file.get(3)).toEqual({ x: 3 / 8, big: 3n * 2n ** 40n });
    const [batch] = await collect(new DataLoader(file, { batchSize: 3, sampler: [7, 1, 22] }));
    expect(batch).toEqual({
      x: { data: Float32Array.of(7 / 8, 1 / 8, 22 / 8), shape: [3] },
      big: { data: BigInt64Array.of(7n * 2n ** 40n, 2n ** 40n, 22n * 2n ** 40n), shape: [3] },
    });
  });

  it('streams its rows, and shares row groups out over ranks', async () => {
    using file = await ParquetFile.open<Row>(path);
    expect(await collect(file.rows())).toEqual(rows);
    const parts = [0, 1].map((rank) =>
      collect(file.rows(shard(file.groupLengths.keys(), { replicas: 2, rank }))),
    );
    const ids = (await Promise.all(parts)).map((part) => part.map(({ id }) => id));
    expect(ids).toEqual([
      [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22],
      [5, 6, 7, 8, 9, 15, 16, 17, 18, 19],
    ]);
  });

  it('decodes each row group once in an epoch of a BlockRandomSampler', async () => {
    const reads: number[] = [];
    using file = await ParquetFile.open<Row>(path, { cachedGroups: 1 });
    const sampler = new BlockRandomSampler(file.groupLengths, { seed: 4 });
    const seen = await collect(new DataLoader(file, { sampler, collate: ([row]) => row!.id }));
    for (const id of seen) {
      const group = Math.floor(id / 5);
      if (reads.at(-1) !== group) reads.push(group);
    }
    expect([...seen].sort((a, b) => a - b)).toEqual(rows.map(({ id }) => id));
    expect(new Set(reads).size).toBe(reads.length);
    expect(seen).not.toEqual(rows.map(({ id }) => id));
  });

  it('reads compression other than snappy', async () => {
    expect(Object.keys(compressors)).toContain('ZSTD');
    const gzipped = join(folder, 'gzip.parquet');
    const { gzipSync } = await import('node:zlib');
    const gzip = (bytes: Uint8Array) => new Uint8Array(gzipSync(bytes));
    const columnData = [{ name: 'id', data: rows.map(({ id }) => id), type: 'INT32' as const }];
    const file = parquetWriteBuffer({ columnData, codec: 'GZIP', compressors: { GZIP: gzip } });
    writeFileSync(gzipped, Buffer.from(file));
    using read = await ParquetFile.open<Pick<Row, 'id'>>(gzipped);
    expect(await read.get(17)).toEqual({ id: 17 });
  });

  it('names file, row group and column of damaged data', async () => {
    const damaged = join(folder, 'damaged.parquet');
    writeRows(damaged, 'UNCOMPRESSED');
    const bytes = readFileSync(damaged);
    const at = bytes.indexOf('row 7 '); // in the second group
    bytes.fill(0xff, at - 20, at + 20);
    writeFileSync(damaged, bytes);
    using file = await ParquetFile.open<Row>(damaged);
    expect(await file.get(0)).toEqual(rows[0]);
    await expect(file.get(7)).rejects.toMatchObject({
      code: 'ERR_DATA_FILE',
      message: expect.stringContaining(
        `(${damaged}, row group 1, rows 5 to 9, column "text"). Get the file again`,
      ) as unknown,
      cause: expect.any(Error) as unknown,
    });
    expect(await file.get(12)).toEqual(rows[12]);
  });

  it('refuses a file that is cut off or no Parquet, a column that is not there, an index outside', async () => {
    const bytes = readFileSync(path);
    const cut = join(folder, 'cut.parquet');
    for (const length of [0, 3, 8, bytes.length >> 1, bytes.length - 1]) {
      writeFileSync(cut, bytes.subarray(0, length));
      await expect(ParquetFile.open(cut)).rejects.toMatchObject({
        code: 'ERR_DATA_FILE',
        message: expect.stringContaining(`(${cut})`) as unknown,
      });
    }
    await expect(ParquetFile.open(path, { columns: ['id', 'y'] })).rejects.toThrow(
      'ParquetFile: a column: expected id, big, x, text, got y.',
    );
    using file = await ParquetFile.open<Row>(path);
    await expect(file.get(23)).rejects.toThrow('ParquetFile: index 23 is outside the data set');
    expect(() => file.rows([5])).toThrow('ParquetFile.rows: index 5 is outside');
  });
});
