import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { type Header, pack } from 'tar-stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TarFile, type TarSample, tarSamples } from '../../../src/formats/tar/index.ts';
import { DataLoader, mapDataset, shard } from '../../../src/index.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tar-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function archive(
  entries: readonly (readonly [(Partial<Header> & { name: string }) | string, string])[],
): Promise<Buffer> {
  const packing = pack();
  for (const [header, content] of entries) {
    packing.entry(typeof header === 'string' ? { name: header } : header, content);
  }
  packing.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of packing) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const shardOf = (first: number, count: number) =>
  archive(
    Array.from({ length: count }, (_, i) => first + i).flatMap((i) => [
      [`train/${i}.txt`, `sample ${i}`.repeat(i)] as const,
      [`train/${i}.cls`, `${i % 3}`] as const,
    ]),
  );

function write(name: string, bytes: Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes!).toString();
const texts = ({ key, files }: TarSample) => [
  key,
  Object.fromEntries(Object.entries(files).map(([extension, bytes]) => [extension, text(bytes)])),
];

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of stream) all.push(item);
  return all;
}

const expected = (i: number) => [`train/${i}`, { txt: `sample ${i}`.repeat(i), cls: `${i % 3}` }];

describe('TarFile', () => {
  it('gives the samples by number, and feeds a loader', async () => {
    using file = new TarFile(write('ten.tar', await shardOf(0, 10)));
    expect(file.length).toBe(10);
    for (const i of [9, 0, 4]) expect(texts(file.get(i))).toEqual(expected(i));
    const labels = mapDataset(file, ({ files }) => Number(text(files.cls)));
    const [batch] = new DataLoader(labels, { batchSize: 4, sampler: [5, 6, 7, 8] });
    expect([...batch!.data]).toEqual([2, 0, 1, 2]);
  });

  it('leaves out folders and links, and keeps keys apart that differ in folder or stem', async () => {
    const bytes = await archive([
      [{ name: 'a/', type: 'directory' }, ''],
      ['a.b/1.seg.png', 'one'],
      ['a.b/1.txt', 'two'],
      [{ name: 'a.b/1.lnk', type: 'symlink', linkname: '1.txt' }, ''],
      ['c/1.txt', ''],
      ['README', 'plain'],
    ]);
    using file = new TarFile(write('kinds.tar', bytes));
    expect(Array.from({ length: file.length }, (_, i) => texts(file.get(i)))).toEqual([
      ['a.b/1', { 'seg.png': 'one', txt: 'two' }],
      ['c/1', { txt: '' }],
      ['README', { '': 'plain' }],
    ]);
  });

  it.each([
    ['of 100 to 255 bytes, in two parts', `${'f'.repeat(80)}/${'n'.repeat(90)}.txt`],
    ['of more, in a pax header', `${'f'.repeat(200)}/${'n'.repeat(300)}.txt`],
    ['beyond ASCII, in a pax header', 'ordner/ä€😀.txt'],
  ])('reads names %s', async (_, name) => {
    using file = new TarFile(
      write(
        'names.tar',
        await archive([
          [name, 'x'],
          ['short.txt', 'y'],
        ]),
      ),
    );
    const samples = [file.get(0), file.get(1)].map(texts);
    expect(samples).toEqual([
      [name.slice(0, -'.txt'.length), { txt: 'x' }],
      ['short', { txt: 'y' }],
    ]);
  });

  it("reads GNU's long names, and sizes in base 256", () => {
    const name = `${'long/'.repeat(50)}name.txt`;
    const content = Buffer.alloc(512, 'x'.repeat(512));
    const bytes = Buffer.concat([
      gnuHeader('././@LongLink', 'L', name.length + 1),
      Buffer.alloc(512, `${name}\0`.padEnd(512, '\0')),
      gnuHeader(name.slice(0, 99), '0', 512, true),
      content,
      Buffer.alloc(1024),
    ]);
    using file = new TarFile(write('gnu.tar', bytes));
    expect(texts(file.get(0))).toEqual([name.slice(0, -4), { txt: content.toString() }]);
  });

  it('refuses an archive that is cut off anywhere, or damaged, and an index outside', async () => {
    const whole = await shardOf(0, 4);
    for (let length = 0; length < whole.length - 1024; length += 333) {
      const path = write('cut.tar', whole.subarray(0, length));
      expect(() => new TarFile(path)).toThrow(expect.objectContaining({ code: 'ERR_DATA_FILE' }));
      expect(() => new TarFile(path)).toThrow('TarFile: the archive is cut off; expected its end, got');
    }
    const damaged = Buffer.from(whole);
    damaged[512 + 5] = 0x7f; // in the name of the second file
    const path = write('damaged.tar', damaged);
    expect(() => new TarFile(path)).toThrow(`a header is damaged; expected its checksum, got`);
    expect(() => new TarFile(path)).toThrow(`(${path}, byte 512)`);
    using file = new TarFile(write('four.tar', whole));
    expect(() => file.get(4)).toThrow('TarFile: index 4 is outside the data set');
  });
});

describe('TarFile beyond the first blocks of zeros', () => {
  it('reads an archive that was appended, as tarSamples() does', async () => {
    const path = write('both.tar', Buffer.concat([await shardOf(0, 2), await shardOf(2, 2)]));
    using file = new TarFile(path);
    const samples = Array.from({ length: file.length }, (_, i) => texts(file.get(i)));
    expect(samples).toEqual([0, 1, 2, 3].map(expected));
    expect((await collect(tarSamples([path]))).map(texts)).toEqual(samples);
  });

  it('refuses a header whose first byte became 0', async () => {
    const bytes = await shardOf(0, 2);
    bytes[512] = 0;
    expect(() => new TarFile(write('zero.tar', bytes))).toThrow('a header is damaged; expected its checksum');
  });
});

describe('pax headers', () => {
  it.each(['1e-9 path=x.txt\n', '0.5 path=x.txt\n', '99 path=x.txt\n', '2 path=x.txt\n', 'path=x.txt\n'])(
    'are refused if a record has another length: %j',
    (record) => {
      const blocks = [
        gnuHeader('pax', 'x', record.length),
        Buffer.alloc(512, record.padEnd(512, '\0')),
        gnuHeader('a.txt', '0', 0),
        Buffer.alloc(1024),
      ];
      const path = write('pax.tar', Buffer.concat(blocks));
      expect(() => new TarFile(path)).toThrow('a pax header is damaged; expected records, got another text');
    },
  );
});

/** Returns a header as GNU tar writes it. */
function gnuHeader(name: string, type: string, size: number, isBinary = false): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  if (isBinary) {
    header[124] = 0x80;
    header.writeBigUInt64BE(BigInt(size), 128);
  } else {
    header.write(size.toString(8).padStart(11, '0'), 124);
  }
  header.write(type, 156);
  header.write('ustar  \0', 257);
  header.fill(' ', 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

describe('files that are not whole in an archive', () => {
  it.each([
    ['a hard link', { type: 'link', linkname: 'a/1.txt' }, 'with tar --hard-dereference'],
    ['sparse', { pax: { 'GNU.sparse.major': '1', 'GNU.sparse.name': 'a/2.txt' } }, 'without --sparse'],
  ] as const)('are refused, by number and in a stream: %s', async (kind, header, how) => {
    const path = write(
      'partial.tar',
      await archive([
        ['a/1.txt', 'one'],
        [{ name: 'a/2.txt', ...header }, ''],
      ]),
    );
    const sentence = `a file is ${kind}; expected every file with all its bytes, got "a/2.txt" (${path}`;
    for (const read of [async () => new TarFile(path), () => collect(tarSamples([path]))]) {
      const failed = expect(read()).rejects;
      await failed.toMatchObject({
        code: 'ERR_DATA_FILE',
        message: expect.stringContaining(sentence) as unknown,
      });
      await expect(read()).rejects.toThrow(`Pack the archive again, ${how}.`);
    }
  });

  it("are refused in GNU's format of sparse files", async () => {
    const bytes = await archive([['a/1.txt', 'one']]);
    bytes.write('S', 156);
    const sum = bytes
      .subarray(0, 512)
      .fill(' ', 148, 156)
      .reduce((total, byte) => total + byte, 0);
    bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    const path = write('sparse.tar', bytes);
    expect(() => new TarFile(path)).toThrow('a file is sparse');
    await expect(collect(tarSamples([path]))).rejects.toThrow('a file is sparse');
  });
});

describe('tarSamples', () => {
  it('streams archives one after the other, gzipped, from a function or a file, anew in each pass', async () => {
    const [first, second, third] = [await shardOf(0, 3), await shardOf(3, 2), await shardOf(5, 4)];
    const stream = tarSamples([
      write('first.tar', first),
      write('second.tar.gz', gzipSync(second)),
      { name: 'third', open: () => Promise.resolve(Readable.from([third])) },
    ]);
    for (let pass = 0; pass < 2; pass++) {
      const samples = await collect(stream);
      expect(samples.map(texts)).toEqual(Array.from({ length: 9 }, (_, i) => expected(i)));
    }
    for await (const sample of stream) {
      expect(texts(sample)).toEqual(expected(0));
      break;
    }
  });

  it('reads the archives of one rank only, given shard', async () => {
    const paths: string[] = [];
    for (let i = 0; i < 5; i++) paths.push(write(`shard-${i}.tar`, await shardOf(2 * i, 2)));
    const parts = [0, 1].map((rank) => collect(tarSamples(shard(paths, { replicas: 2, rank }))));
    const keys = (await Promise.all(parts)).map((part) => part.map(({ key }) => Number(key.slice(6))));
    expect(keys).toEqual([
      [0, 1, 4, 5, 8, 9],
      [2, 3, 6, 7],
    ]);
  });

  it('names an archive that is cut off, damaged or missing, and the place in it', async () => {
    const whole = await shardOf(0, 4);
    const cut = write('half.tar', whole.subarray(0, 2100));
    const gz = write('half.tar.gz', gzipSync(whole).subarray(0, 100));
    const damaged = Buffer.from(whole);
    damaged[512 + 5] = 0x7f;
    for (const [path, where] of [
      [cut, 'train/1.txt'],
      [gz, ''],
      [write('bad.tar', damaged), 'train/0.txt'],
    ] as const) {
      await expect(collect(tarSamples([path]))).rejects.toMatchObject({
        code: 'ERR_DATA_FILE',
        message: expect.stringContaining(`${path}, at ${where}`) as unknown,
        cause: expect.any(Error) as unknown,
      });
    }
    // Cut off between two files, and empty.
    for (const bytes of [whole.subarray(0, 5 * 512), whole.subarray(0, 0)]) {
      const message = expect.stringContaining('got no end: it is cut off') as unknown;
      const reading = collect(tarSamples([write('between.tar', bytes)]));
      await expect(reading).rejects.toMatchObject({ code: 'ERR_DATA_FILE', message });
    }
    const none = join(folder, 'none.tar');
    await expect(collect(tarSamples([none]))).rejects.toMatchObject({
      ...{ code: 'ERR_DATA_FILE', cause: { code: 'ENOENT' } },
      message: expect.stringContaining(`(${none})`) as unknown,
    });
    expect(readFileSync(cut).length).toBe(2100);
  });
});
