// Readers refuse files that were made to exhaust memory, to make the reader wait, or to be mistaken for another format,
// and they explain the mistakes of a first use.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { parquetMetadata } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CsvFile } from '../../src/formats/csv/index.ts';
import { loadMnist, readIdx, writeIdx } from '../../src/formats/idx/index.ts';
import { ImageFolder } from '../../src/formats/images/index.ts';
import { JsonLinesFile, jsonLines } from '../../src/formats/json/index.ts';
import { NpyFile } from '../../src/formats/npy/index.ts';
import { ParquetFile } from '../../src/formats/parquet/index.ts';
import { ThriftReader } from '../../src/formats/parquet/parquet-thrift.ts';
import { SafetensorsFile } from '../../src/formats/safetensors/index.ts';
import { TarFile, tarSamples } from '../../src/formats/tar/index.ts';
import { TokenFile } from '../../src/formats/tokens/index.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hostile-files-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, bytes: Uint8Array | string): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

/** Returns the message of a refusal. Checks that it took less than 32 MiB of array buffers and 64 MiB of heap. */
async function refusal(read: () => unknown, code = 'ERR_DATA_FILE'): Promise<string> {
  const { arrayBuffers } = process.memoryUsage();
  const heap = process.memoryUsage().heapUsed;
  let error: unknown;
  try {
    await read();
  } catch (reason) {
    error = reason;
  }
  expect(error).toMatchObject({ name: 'DataError', code });
  expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(2 ** 25);
  expect(process.memoryUsage().heapUsed - heap).toBeLessThan(2 ** 26);
  return (error as Error).message;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

describe('npy', () => {
  const npy = (text: string, data: Uint8Array): string => {
    const start = Buffer.from('\x93NUMPY\x02\0\0\0\0\0', 'latin1');
    start.writeUInt32LE(text.length, 8);
    return write('a.npy', Buffer.concat([start, Buffer.from(text), data]));
  };
  const refused = (text: string, data = new Uint8Array(0)): Promise<string> =>
    refusal(() => new NpyFile(npy(text, data)));

  it('headers that cost time are refused at once', async () => {
    expect(await refused(`{${"'shape': (".repeat(9900)}}`)).toContain('expected a shape');
    expect(await refused(`{${"'shape': (".repeat(100_000)}}`)).toContain('a header of at most 100000 bytes');
    expect(await refused(`{${' '.repeat(99_000)}x`)).toContain('expected a shape');
  }, 2000);

  it('a member twice, no order, and sizes that are no digits', async () => {
    const one = Uint8Array.of(1);
    const dict = (shape: string, more = ''): string =>
      `{'descr': '|u1', 'fortran_order': False, 'shape': ${shape}, ${more}}`;
    expect(await refused(dict('(1,)', "'shape': (2,)"), one)).toContain('shape twice');
    expect(await refused("{'descr': '|u1', 'shape': (1,)}", one)).toContain('expected fortran_order');
    for (const shape of ['(1e0,)', '(0x1,)', '(1.0,)', '(+1,)', '(,)', '(1,,)'])
      expect(await refused(dict(shape), one)).toMatch(/expected (a shape|at least one)/);
    expect(await refused("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", one)).toContain(
      'one of the types b1',
    );
    const long = await refused(
      `{'descr': '\u001b[2J${'x'.repeat(90_000)}', 'fortran_order': False, 'shape': (1,)}`,
    );
    expect(long.length).toBeLessThan(800);
    expect(long).not.toContain('\u001b');
  });

  it('more rows without bytes than a sampler would take memory for', async () => {
    const text = "{'descr': '|u1', 'fortran_order': False, 'shape': (2147483647, 0)}";
    expect(await refused(text)).toContain('rows without bytes');
    using few = new NpyFile(
      npy("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 0)}", new Uint8Array(0)),
    );
    expect(few.getBatch([2, 0]).shape).toEqual([2, 0]);
  });
});

describe('safetensors', () => {
  const safetensors = (text: string, bytes = 0): string => {
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
    return write('a.safetensors', Buffer.concat([length, Buffer.from(text), Buffer.alloc(bytes)]));
  };
  const refused = (text: string, bytes = 0): Promise<string> =>
    refusal(() => new SafetensorsFile(safetensors(text, bytes)));
  const u8 = (begin: number, end: number): string =>
    `{"dtype":"U8","shape":[${end - begin}],"data_offsets":[${begin},${end}]}`;

  it('a name twice, however it is written', async () => {
    expect(await refused(`{"a":${u8(0, 1)},"\\u0061":${u8(0, 2)}}`, 2)).toContain('it has "a" twice');
    expect(await refused(`{"a":{"shape":[2],"shape":[1],"dtype":"U8","data_offsets":[0,1]}}`, 1)).toContain(
      'twice',
    );
  });

  it('a header that is no object, metadata that is no text, and nesting deeper than any header has', async () => {
    for (const text of ['null', '5', '[]', '"a"'])
      expect(await refused(text)).toContain('a header that is an object');
    for (const metadata of ['5', '["a"]', '{"a":1}', '{"a":null}'])
      expect(await refused(`{"__metadata__":${metadata},"a":${u8(0, 1)}}`, 1)).toContain(
        'an object of strings',
      );
    expect(await refused(`{"a":${'['.repeat(1_000_000)}`)).toContain('nested more than 8 deep');
    expect(await refused('{"a":{"dtype":{"toString":1},"shape":[1],"data_offsets":[0,1]}}', 1)).toContain(
      'a type of',
    );
    for (const tensor of ['null', '5', '[]', '{}'])
      expect(await refused(`{"a":${tensor}}`)).toContain('a type of');
    const path = safetensors('{"a":1}');
    const bytes = Buffer.from(`\x07\0\0\0\0\0\0\0{"\xff":1}`, 'latin1');
    writeFileSync(path, bytes);
    expect(await refusal(() => new SafetensorsFile(path))).toContain('a header of JSON');
  });

  it('more rows without bytes than a sampler would take memory for', async () => {
    const text = '{"a":{"dtype":"U8","shape":[2147483647,0],"data_offsets":[0,0]}}';
    expect(await refused(text)).toContain('rows without bytes');
  });

  it('messages are short, and cannot write to a terminal', async () => {
    for (const name of ['x'.repeat(100_000), '\\u001b[2J']) {
      const message = await refused(`{"${name}":5}`);
      expect(message.length).toBeLessThan(1000);
      expect(message).not.toContain('\u001b');
    }
  });
});

describe('tar', () => {
  /** Returns one file of a tar archive, padded to a multiple of 512 bytes. */
  function entry(name: string, content: string, type = '0'): Buffer {
    const header = Buffer.alloc(512);
    header.write(name);
    header.write('0000644\0', 100);
    header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
    header.write('        ', 148);
    header.write(type, 156);
    header.write('ustar\x0000', 257, 'latin1');
    let sum = 0;
    for (const byte of header) sum += byte;
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return Buffer.concat([header, Buffer.alloc(Math.ceil(content.length / 512) * 512, content)]);
  }
  const end = Buffer.alloc(1024);

  it('a file twice in one sample, of which one would hide the other', async () => {
    const path = write('twice.tar', Buffer.concat([entry('a.txt', 'x'), entry('a.txt', 'y'), end]));
    expect(await refusal(() => new TarFile(path))).toContain(
      'a name is there twice; expected every file of a sample once, got "a.txt"',
    );
    expect(await refusal(() => all(tarSamples([path])))).toContain('a name is there twice');
    const apart = write('apart.tar', Buffer.concat([entry('a.txt', 'x'), entry('b.txt', 'y'), end]));
    expect(new TarFile(apart).length).toBe(2);
    expect(await all(tarSamples([apart, apart]))).toHaveLength(4);
  });

  it('a sample of very many files without bytes, from few packed ones', async () => {
    const files = Array.from({ length: 3000 }, (_, i) => entry(`a.${i}`, ''));
    const path = write('many.tar.gz', gzipSync(Buffer.concat([...files, end])));
    const samples = (): Promise<unknown> => all(tarSamples([path], { maxSampleBytes: 2 ** 20 }));
    expect(await refusal(samples)).toContain('a sample is too large; expected at most 1048576 bytes');
  });

  it('a size in a pax header that is no size', async () => {
    for (const size of ['-1', 'NaN', '1e99', '9007199254740993']) {
      const record = `size=${size}\n`;
      const pax = entry('pax', `${record.length + 3} ${record}`, 'x');
      const path = write('pax.tar', Buffer.concat([pax, entry('a.txt', 'x'), end]));
      expect(await refusal(() => new TarFile(path))).toMatch(/a header is damaged|the archive is cut off/);
    }
  });

  it('a pipe, a device and a folder are no archives; a stream of the caller is one', async () => {
    const pipe = join(folder, 'pipe.tar');
    execFileSync('mkfifo', [pipe]);
    for (const path of [pipe, '/dev/zero', folder])
      expect(await refusal(() => all(tarSamples([path])))).toContain('expected a regular file');
    const bytes = Buffer.concat([entry('a.txt', 'x'), end]);
    const samples = await all(tarSamples([{ name: 'net', open: () => Readable.from([bytes]) }]));
    expect(samples.map(({ key }) => key)).toEqual(['a']);
  });
});

describe('idx', () => {
  it('a file that is larger than its header says, without reading it', async () => {
    const path = write('hole.idx', Buffer.from([0, 0, 8, 1, 0, 0, 0, 100]));
    truncateSync(path, 2 ** 40);
    expect(await refusal(() => readIdx(path), 'ERR_DATA_IDX')).toContain(
      'trailing bytes; expected 108 bytes',
    );
  });

  it('reads a gzip file that ends with a hole', async () => {
    const path = write('hole.idx.gz', gzipSync(Buffer.from([0, 0, 8, 1, 0, 0, 0, 1, 7])));
    truncateSync(path, 2 ** 33);
    expect((await readIdx(path)).shape).toEqual([1]); // gzip allows zeros at the end
  });
});

describe('images', () => {
  it('a pipe, a device, a hole and a folder with the name of a picture', async () => {
    mkdirSync(join(folder, 'pictures/one/b.png'), { recursive: true });
    execFileSync('mkfifo', [join(folder, 'pictures/one/a.png')]);
    truncateSync(write('pictures/one/c.png', ''), 2 ** 40);
    execFileSync('ln', ['-s', '/dev/zero', join(folder, 'pictures/one/d.png')]);
    const pictures = await ImageFolder.open(join(folder, 'pictures'), { height: 8, width: 8 });
    expect(pictures.length).toBe(4);
    for (const index of [0, 1, 3])
      expect(await refusal(() => pictures.get(index))).toContain('expected a regular file');
    expect(await refusal(() => pictures.get(2))).toContain('an image file is too large');
  });

  it('a file that is no picture, with the extension of one', async () => {
    mkdirSync(join(folder, 'texts/one'), { recursive: true });
    write('texts/one/a.png', 'no picture');
    const pictures = await ImageFolder.open(join(folder, 'texts'), { height: 8, width: 8 });
    expect(await refusal(() => pictures.getBatch([0]))).toContain('cannot decode');
  });
});

describe('csv', () => {
  const open = (text: string): Promise<unknown> =>
    CsvFile.open(write('a.csv', text), { columns: { x: 'int32' } });

  it('a column twice, of which one would be read', async () => {
    expect(await refusal(() => open('x,y,x\n1,2,3\n'))).toContain(
      'a column is there twice; expected one "x"',
    );
  });

  it('a record that is several, or none, to the parser', async () => {
    const path = write('quotes.csv', 'x\n1 "\n" 2\n3\n');
    using file = await CsvFile.open(path, { columns: { x: 'string' } });
    expect(await refusal(() => file.getBatch([0, 1]))).toContain(path);
  });

  it('messages cannot write to a terminal', async () => {
    const file = await CsvFile.open(write('a.csv', 'x\n\u001b[2J\n'), { columns: { x: 'int32' } });
    expect(await refusal(() => file.get(0))).not.toContain('\u001b');
    file.close();
  });
});

describe('parquet', () => {
  function footer(...bytes: readonly number[]): string {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return write(
      'a.parquet',
      Buffer.concat([Buffer.from('PAR1'), Buffer.from(bytes), length, Buffer.from('PAR1')]),
    );
  }
  const refused = (path: string): Promise<string> => refusal(() => ParquetFile.open(path));
  const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  // biome-ignore format: one thing
  const column = (name: string, count: number) => ({ name, data: Float64Array.from(numbers(count)), type: 'DOUBLE' as const });

  /** Encodes an integer as the footer's 64-bit fields do, in at least `least` bytes. */
  function varint(value: bigint, least = 1): Buffer {
    const bytes: number[] = [];
    for (let rest = value * 2n; rest > 0n || bytes.length < least; rest >>= 7n)
      bytes.push(Number(rest & 127n));
    return Buffer.from(bytes.map((byte, i) => (i < bytes.length - 1 ? byte | 128 : byte)));
  }

  it('lists of a footer that claim more elements than it has bytes, also within lists', async () => {
    const many = [0xff, 0xff, 0xff, 0x0f]; // 2²⁵ − 1
    const nested = Array.from({ length: 12 }, () => [0xf9, ...many]).flat();
    expect(await refused(footer(0x29, 0xfc, ...many, 0))).toContain('a list of 33554431 elements in 1 bytes');
    expect(await refused(footer(0x29, ...nested))).toContain('a list of 33554431 elements');
    const deep = Array.from({ length: 100_000 }, () => 0x1c);
    expect(await refused(footer(...deep))).toContain('structs more than 32 deep');
    expect(await refused(footer(0x29, ...Array.from({ length: 100_000 }, () => 0x19)))).toContain(
      'lists more than',
    );
  });

  it('a footer that is damaged or missing', async () => {
    expect(await refused(write('a.parquet', ''))).toContain('a file of 0 bytes');
    expect(await refused(write('a.parquet', 'PAR1PAR2'))).toContain('another end than PAR1');
    expect(await refused(footer())).toContain('bytes that end early');
    expect(await refused(footer(0x18, 0x7f, 0))).toContain('127 bytes of a text in 1');
    expect(await refused(footer(0x1d))).toContain('an unknown type, 13');
    expect(await refused(footer(0))).toContain('the footer cannot be read');
    const path = write('hole.parquet', Buffer.alloc(0));
    truncateSync(path, 2 ** 40);
    expect(await refused(path)).toContain('another end than PAR1');
    const bytes = Buffer.from('\xff\xff\xff\xffPAR1', 'latin1');
    expect(await refused(write('a.parquet', bytes))).toContain('where 0 are possible');
  });

  it('row groups that share their bytes', async () => {
    // biome-ignore format: one thing
    const whole = Buffer.from(parquetWriteBuffer({ columnData: [column('x', 3000)], rowGroupSize: 1000, codec: 'UNCOMPRESSED' }));
    const { row_groups: groups, metadata_length: length } = parquetMetadata(
      new Uint8Array(whole).buffer as ArrayBuffer,
    );
    const places = groups.map(({ columns }) => columns[0]!.meta_data!.data_page_offset);
    expect(places).toHaveLength(3);
    for (const place of places.slice(1)) {
      const [is, shall] = [varint(place), varint(places[0]!, varint(place).length)];
      for (let at = whole.length - length - 8; ; at++) {
        at = whole.indexOf(is, at);
        if (at < 0) break;
        shall.copy(whole, at);
      }
    }
    expect(await refused(write('shared.parquet', whole))).toContain('a column behind the one before');
  });

  it('a page that claims more values than the footer gives its column', async () => {
    const columnData = [column('x', 300)];
    const whole = Buffer.from(parquetWriteBuffer({ columnData, codec: 'UNCOMPRESSED' }));
    const at = whole.indexOf(varint(300n), 4);
    expect(at).toBeLessThan(40);
    varint(500n).copy(whole, at);
    using file = await ParquetFile.open(write('page.parquet', whole));
    expect(await refusal(() => file.get(0))).toContain(
      'a page of at most 300 values, got one that claims 500',
    );
  });

  it('a page header without a number that hyparquet takes for granted', async () => {
    const columnData = [column('x', 300)];
    const whole = Buffer.from(parquetWriteBuffer({ columnData, codec: 'UNCOMPRESSED' }));
    const at = whole.indexOf(varint(300n), 4) + 2; // turn the number of nulls into another field
    expect(whole[at]).toBe(0x15);
    whole[at] = 0x05;
    using file = await ParquetFile.open(write('page.parquet', whole));
    expect(await refusal(() => file.get(0))).toContain('no integer of at least 0 in field 2');
  });

  it('a column of a row group that the schema does not have, or that is there twice', async () => {
    const whole = Buffer.from(parquetWriteBuffer({ columnData: [column('xaxa', 9), column('xbxb', 9)] }));
    const at = whole.lastIndexOf('xbxb'); // the path of the column, which follows its name
    whole.write('xaxa', at);
    expect(await refused(write('twice.parquet', whole))).toContain('every column once, got "xaxa" twice');
    whole.write('zzzz', at);
    expect(await refused(write('other.parquet', whole))).toContain('columns of the schema, got "zzzz"');
    whole.write('xbxb', at);
    whole.write('xaxa', whole.indexOf('xbxb'));
    expect(await refused(write('name.parquet', whole))).toContain('a column is there twice');
  });

  it('more rows than a column has values', async () => {
    const columnData = [column('x', 300)];
    const whole = Buffer.from(parquetWriteBuffer({ columnData, codec: 'UNCOMPRESSED' }));
    const { metadata_length: length } = parquetMetadata(new Uint8Array(whole).buffer as ArrayBuffer);
    const last = whole.lastIndexOf(varint(300n));
    expect(last).toBeGreaterThan(whole.length - length - 8);
    varint(500n).copy(whole, last);
    expect(await refused(write('rows.parquet', whole))).toContain(
      '500 values, one for each row, in each column, got 300',
    );
  });

  it('numbers of a page header that are no integers read as NaN', () => {
    const double = Buffer.alloc(8);
    double.writeDoubleLE(1e9);
    const fields = new ThriftReader(Buffer.from([0x17, ...double, 0x15, 0x0a, 0x16, 0x0a, 0x11, 0])).struct();
    expect([...fields]).toEqual([
      [1, Number.NaN],
      [2, 5],
      [3, Number.NaN],
      [4, Number.NaN],
    ]);
  });
});

describe('every damaged byte gives a DataError or changes nothing', () => {
  const outcome = async (read: () => unknown): Promise<void> => {
    try {
      await read();
    } catch (error) {
      expect(error).toMatchObject({ name: 'DataError' });
    }
  };
  const damage = async (
    whole: Buffer,
    name: string,
    read: (path: string) => unknown,
    step = 1,
  ): Promise<void> => {
    for (let at = 0; at < whole.length; at += step) {
      const bad = Buffer.from(whole);
      bad[at] = bad[at]! ^ (1 << (at % 8));
      await outcome(() => read(write(name, bad)));
      if (at % 3 === 0) await outcome(() => read(write(name, whole.subarray(0, at))));
    }
  };

  it('of npy', async () => {
    const text = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }".padEnd(117);
    const whole = Buffer.concat([
      Buffer.from('\x93NUMPY\x01\0\x76\0', 'latin1'),
      Buffer.from(`${text}\n`),
      Buffer.alloc(8),
    ]);
    await damage(whole, 'byte.npy', (path) => {
      using file = new NpyFile(path);
      if (file.length > 0) file.get(0);
    });
  });

  it('of safetensors', async () => {
    const text = '{"__metadata__":{"a":"b"},"x":{"dtype":"I16","shape":[2,2],"data_offsets":[0,8]}}';
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    await damage(Buffer.concat([length, Buffer.from(text), Buffer.alloc(8)]), 'byte.safetensors', (path) => {
      using file = new SafetensorsFile(path);
      if (file.length > 0) file.get(0);
    });
  });

  it('of parquet', async () => {
    const columnData = [
      { name: 'x', data: [1.5, 2.5, 3.5], type: 'DOUBLE' as const },
      { name: 'y', data: ['a', 'b', 'a'], type: 'STRING' as const },
    ];
    const whole = Buffer.from(parquetWriteBuffer({ columnData }));
    await damage(whole, 'byte.parquet', async (path) => {
      using file = await ParquetFile.open(path);
      if (file.length > 0) await file.get(0);
    });
  });
});

describe('mistakes of a first use', () => {
  const no = undefined as never;
  const calls: Readonly<Record<string, [call: () => unknown, message: string]>> = {
    'new NpyFile()': [() => new NpyFile(no), 'open: path: expected a path, as a string, got undefined.'],
    'new NpyFile(URL)': [
      () => new NpyFile(new URL('file:///a') as never),
      'expected a path, as a string, got an object',
    ],
    'new SafetensorsFile(5)': [() => new SafetensorsFile(5 as never), 'expected a path, as a string, got 5'],
    'new TokenFile()': [() => new TokenFile(no, { block: 1 }), 'expected a path'],
    'new TokenFile(path)': [() => new TokenFile('a', no), 'TokenFile: block: expected an integer'],
    'new TokenFile(path, 5)': [
      () => new TokenFile('a', 5 as never),
      'TokenFile: options are a number; expected an object',
    ],
    'new JsonLinesFile()': [() => new JsonLinesFile(no), 'expected a path'],
    'jsonLines()': [() => jsonLines(no), 'jsonLines: path: expected a path'],
    'new TarFile([])': [() => new TarFile([] as never), 'expected a path, as a string, got an array of 0'],
    'tarSamples()': [() => tarSamples(no), 'tarSamples: sources: expected an iterable'],
    'tarSamples(path)': [() => tarSamples('a.tar' as never), 'tarSamples: sources: expected an iterable'],
    'tarSamples([5])': [
      () => all(tarSamples([5 as never])),
      'tarSamples: a source: expected a path, or { name, open }, got 5',
    ],
    'tarSamples([null])': [() => all(tarSamples([null as never])), 'tarSamples: a source: expected a path'],
    'tarSamples([{}])': [() => all(tarSamples([{} as never])), 'tarSamples: a source: expected a path'],
    'tarSamples([{ open }])': [
      () => all(tarSamples([{ name: 'a', open: () => 5 as never }])),
      'expected a readable stream, got 5',
    ],
    'readIdx()': [() => readIdx(no), 'readIdx: path: expected a path'],
    'readIdx(path, 5)': [() => readIdx('a', 5 as never), 'readIdx: options are a number'],
    'readIdx maxBytes': [
      () => readIdx('a', { maxBytes: '5' as never }),
      "readIdx: maxBytes: expected an integer of at least 1, got '5'",
    ],
    'writeIdx()': [
      () => writeIdx(no, { data: new Uint8Array(1), shape: [1] }),
      'writeIdx: path: expected a path',
    ],
    'writeIdx(path)': [() => writeIdx('a', no), 'writeIdx: array: expected { data, shape }'],
    'writeIdx(path, list)': [
      () => writeIdx('a', { data: [1], shape: [1] } as never),
      'writeIdx: array: expected { data, shape }',
    ],
    'loadMnist()': [() => loadMnist(no), 'loadMnist: folder: expected a path'],
    'CsvFile.open()': [() => CsvFile.open(no, { columns: {} }), 'CsvFile: path: expected a path'],
    'CsvFile.open(path)': [
      () => CsvFile.open('a', no),
      'CsvFile: columns: expected an object of types by name',
    ],
    'ParquetFile.open()': [() => ParquetFile.open(no), 'ParquetFile: path: expected a path'],
    'ParquetFile.open columns': [
      () => ParquetFile.open('a', { columns: 'x' as never }),
      "columns: expected a list of names, got 'x'",
    ],
    'ImageFolder.open()': [
      () => ImageFolder.open(no, { height: 1, width: 1 }),
      'ImageFolder: folder: expected a path',
    ],
    'ImageFolder.open(folder)': [() => ImageFolder.open('a', no), 'ImageFolder: height: expected an integer'],
  };

  it.each(Object.entries(calls))('%s is refused with a sentence', async (_, [call, message]) => {
    expect(await refusal(call, 'ERR_DATA_ARGUMENT')).toContain(message);
  });

  const readers: Readonly<Record<string, (path: string) => unknown>> = {
    NpyFile: (path) => new NpyFile(path),
    SafetensorsFile: (path) => new SafetensorsFile(path),
    TokenFile: (path) => new TokenFile(path, { block: 1 }),
    JsonLinesFile: (path) => new JsonLinesFile(path),
    jsonLines: (path) => [...jsonLines(path)],
    TarFile: (path) => new TarFile(path),
    tarSamples: (path) => all(tarSamples([path])),
    readIdx,
    writeIdx: (path) => writeIdx(path, { data: new Uint8Array(1), shape: [1] }),
    CsvFile: (path) => CsvFile.open(path, { columns: {} }),
    ParquetFile: (path) => ParquetFile.open(path),
    ImageFolder: (path) => ImageFolder.open(path, { height: 1, width: 1 }),
  };

  it.each(Object.entries(readers))('%s refuses a missing file with a sentence', async (_, read) => {
    const path = join(folder, 'no/such/file');
    const message = await refusal(() => read(path));
    expect(message).toContain('ENOENT');
    expect(message).toContain(`(${path})`);
  });
});
