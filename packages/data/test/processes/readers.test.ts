// Tests readers in worker threads, and without the optional packages that some of them need. Uses the built package,
// because a worker of Node 20 cannot run TypeScript, and copies it elsewhere, where the optional packages are missing.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parquetWriteBuffer } from 'hyparquet-writer';
import sharp from 'sharp';
import { pack } from 'tar-stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const dist = new URL('../../dist/', import.meta.url);
const { DataError, DataLoader, loadDataset }: typeof import('../../src/index.ts') = await import(
  new URL('index.js', dist).href
);

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'readers-'));
  const count = 10;
  const x = Array.from({ length: count }, (_, i) => i * 1.5);
  writeFileSync(join(folder, 'csv'), `x\n${x.join('\n')}\n`);
  const columnData = [{ name: 'x', data: x, type: 'DOUBLE' as const }];
  writeFileSync(join(folder, 'parquet'), Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 3 })));
  const packing = pack();
  for (let i = 0; i < count; i++) packing.entry({ name: `${i}.x` }, Buffer.from([i]));
  packing.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of packing) chunks.push(chunk as Buffer);
  writeFileSync(join(folder, 'tar'), Buffer.concat(chunks));
  const header = JSON.stringify({ x: { dtype: 'F64', shape: [count], data_offsets: [0, 8 * count] } });
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const data = Buffer.from(Float64Array.from(x).buffer);
  writeFileSync(join(folder, 'safetensors'), Buffer.concat([length, Buffer.from(header), data]));
  mkdirSync(join(folder, 'images/only'), { recursive: true });
  for (let i = 0; i < count; i++) {
    const raw = { width: 8, height: 8, channels: 1 } as const;
    const file = join(folder, `images/only/${i}.png`);
    await sharp(Buffer.alloc(64, 10 * i), { raw })
      .png()
      .toFile(file);
  }
  mkdirSync(join(folder, 'jpegs/only'), { recursive: true });
  for (let i = 0; i < count; i++) {
    // Some have the size of the samples, and are decoded in another way in workers.
    const [width, height] = i % 3 === 0 ? [31, 47] : [40, 24];
    const pixels = Uint8Array.from({ length: width * height * 3 }, (_, k) => (k * k * (i + 31)) & 255);
    await sharp(pixels, { raw: { width, height, channels: 3 } })
      .jpeg({ progressive: i % 2 === 0 })
      .toFile(join(folder, `jpegs/only/${i}.jpg`));
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function collect(batches: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const batch of batches) all.push(batch);
  return all;
}

/** Resolves with the error of `run`. */
async function failureOf(run: Promise<unknown>): Promise<Error> {
  return await run.then(
    () => expect.unreachable(),
    (error: unknown) => error as Error,
  );
}

describe('a reader in worker threads gives what it gives in one thread', () => {
  const module = new URL('../fixtures/files.mjs', import.meta.url);

  it.each(['csv', 'parquet', 'tar', 'safetensors', 'images', 'jpegs'])('%s', async (kind) => {
    const dataset = await loadDataset(module, { kind, path: join(folder, kind) });
    const options = { batchSize: 3, shuffle: true };
    await using loader = new DataLoader(dataset, { ...options, numWorkers: 2 });
    const alone = await collect(new DataLoader(dataset, options));
    expect(alone).toHaveLength(4);
    expect(await collect(loader)).toEqual(alone);
  });

  it('an image that is damaged or a folder, which the error names', async () => {
    const images = join(folder, 'damaged/only');
    mkdirSync(images, { recursive: true });
    for (const name of ['a', 'b']) cpSync(join(folder, 'images/only/0.png'), join(images, `${name}.png`));
    const bad = join(images, 'b.png');
    const damage = () => writeFileSync(bad, 'no image');
    const makeFolder = () => {
      rmSync(bad);
      mkdirSync(bad);
    };
    for (const change of [damage, makeFolder]) {
      change();
      const dataset = await loadDataset(module, { kind: 'images', path: join(images, '..') });
      await using loader = new DataLoader(dataset, { batchSize: 1, numWorkers: 1 });
      const error = await failureOf(collect(loader));
      const failed = { code: 'ERR_DATA_FILE', message: expect.stringContaining(bad) };
      expect(error).toMatchObject({ code: 'ERR_DATA_WORKER' });
      expect(error.cause).toMatchObject(failed);
      expect(DataError.isInstance(error.cause)).toBe(true);
      expect(await failureOf(collect(new DataLoader(dataset, { batchSize: 1 })))).toMatchObject(failed);
    }
  });

  it('a stream of tar archives, one archive to each worker', async () => {
    const args = { kind: 'tarStream', path: join(folder, 'tar') };
    const stream = await loadDataset<AsyncIterable<{ key: string }>>(module, args);
    await using loader = new DataLoader(stream, { batchSize: 5, numWorkers: 2 });
    const keys = (await collect(loader)).flatMap((batch) => (batch as { key: string[] }).key);
    expect(keys.toSorted()).toEqual([...'00112233445566778899']);
  });
});

it('says what to install where its package is missing', async () => {
  const away = join(folder, 'away');
  cpSync(fileURLToPath(dist), away, { recursive: true });
  const script = join(away, 'script.mjs');
  writeFileSync(
    script,
    `import { CsvFile } from './csv.js';
    import { ImageFolder } from './images.js';
    import { ParquetFile } from './parquet.js';
    import { tarSamples } from './tar.js';
    const opened = [
      CsvFile.open('x', { columns: {} }),
      ParquetFile.open('x'),
      ImageFolder.open('x', { height: 1, width: 1 }),
      tarSamples(['x'])[Symbol.asyncIterator]().next(),
    ];
    const errors = (await Promise.allSettled(opened)).map(({ reason }) => reason);
    process.stdout.write(JSON.stringify(errors.map(({ code, message, cause }) => [code, message, cause.code])));`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, [script], { timeout: 120_000 });
  const expected = [
    ['CsvFile', 'csv-parse'],
    ['ParquetFile', 'hyparquet'],
    ['ImageFolder', 'sharp'],
    ['tarSamples', 'tar-stream'],
  ].map(([reader, name]) => [
    'ERR_DATA_PEER',
    expect.stringMatching(
      new RegExp(`^${reader}: expected the package ${name}, got: .*${name}.*\\. Run npm install ${name}\\.$`),
    ),
    'ERR_MODULE_NOT_FOUND',
  ]);
  expect(JSON.parse(stdout)).toEqual(expected);
});
