// Tests safetensors files: round trips, layout, dtypes that tensors do not have, and the refusal of wrong files.
import { spawnSync } from 'node:child_process';
import { lstat, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  loadSafetensors,
  openSafetensors,
  safetensorsMetadata,
  saveSafetensors,
} from '../../../src/files/safetensors/index.ts';
import { type DType, memory, rand, type Tensor, TensorError, tensor, zeros } from '../../../src/index.ts';
import { Linear } from '../../../src/nn/index.ts';
import { collected } from '../../support/collected.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ringwise-safetensors-'));
});
afterAll(() => rm(directory, { recursive: true }));

const file = (name: string): string => join(directory, name);

/** Writes a file with any header and any data. */
async function handmade(header: unknown, data: number | Buffer, headerBytes?: bigint): Promise<string> {
  const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(headerBytes ?? BigInt(text.length));
  const path = file('handmade.safetensors');
  await writeFile(path, Buffer.concat([length, text, typeof data === 'number' ? Buffer.alloc(data) : data]));
  return path;
}

async function failure(promise: Promise<unknown>): Promise<TensorError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(TensorError);
  expect((error as TensorError).code).toBe('ERR_TENSOR_SAFETENSORS');
  return error as TensorError;
}

describe('the path of a file that is written', () => {
  test('may be a symbolic link, which stays', async () => {
    const [link, target] = [file('latest.safetensors'), file('run-1.safetensors')];
    await saveSafetensors(target, { x: zeros([1]) });
    await symlink(target, link);
    await saveSafetensors(link, { x: tensor([5]) });
    expect((await lstat(link)).isSymbolicLink()).toBe(true);
    expect((await loadSafetensors(target)).x!.toArray()).toEqual([5]);
  });

  test('may be no pipe or device, which a rename would remove', async () => {
    const pipe = file('pipe');
    expect(spawnSync('mkfifo', [pipe]).status).toBe(0);
    const error = await failure(saveSafetensors(pipe, { x: zeros([1]) }));
    expect(error.message).toContain(
      'could not be written (it is a device, a pipe or a socket; expected a file',
    );
    expect((await lstat(pipe)).isFIFO()).toBe(true);
  });
});

describe('a round trip', () => {
  test('keeps values, shapes, dtypes and metadata', async () => {
    const path = file('all.safetensors');
    const tensors: Record<string, Tensor> = {
      weights: rand([3, 5]),
      scalar: tensor(2.5),
      labels: tensor([1n, -(2n ** 60n)]),
      counts: tensor([1, -2, 3], { dtype: 'int32' }),
      empty: zeros([0, 4]),
      'a "quoted" näme': tensor([NaN, Infinity, -0]),
    };
    await saveSafetensors(path, tensors, { epoch: '3' });
    const loaded = await loadSafetensors(path);
    expect(Object.keys(loaded).sort()).toEqual(Object.keys(tensors).sort());
    for (const [name, { shape, dtype }] of Object.entries(tensors)) {
      expect(loaded[name]).toMatchObject({ shape, dtype });
      expect(loaded[name]!.dataSync()).toEqual(tensors[name]!.dataSync());
    }
    expect(await safetensorsMetadata(path)).toEqual({ epoch: '3' });
    await saveSafetensors(path, {});
    expect(await loadSafetensors(path)).toEqual({});
    expect(await safetensorsMetadata(path)).toEqual({});
  });

  test('carries a model', async () => {
    const path = file('model.safetensors');
    const [a, b] = [new Linear(3, 2), new Linear(3, 2)];
    await saveSafetensors(path, a.stateDict());
    b.loadStateDict(await loadSafetensors(path));
    expect(b.weight.toArray()).toEqual(a.weight.toArray());
  });
});

describe('a file', () => {
  test('has an aligned, space-padded header and wider dtypes first, then names in order', async () => {
    const path = file('layout.safetensors');
    await saveSafetensors(path, { b: tensor([1]), a: tensor([2]), z: tensor([3n]) });
    const bytes = await readFile(path);
    const headerBytes = Number(bytes.readBigUInt64LE());
    expect(headerBytes % 8).toBe(0);
    const text = bytes.subarray(8, 8 + headerBytes).toString();
    expect(text).toMatch(/^\{.*\} *$/);
    expect(JSON.parse(text)).toEqual({
      z: { dtype: 'I64', shape: [1], data_offsets: [0, 8] },
      a: { dtype: 'F32', shape: [1], data_offsets: [8, 12] },
      b: { dtype: 'F32', shape: [1], data_offsets: [12, 16] },
    });
    expect([bytes.readFloatLE(8 + headerBytes + 8), bytes.length]).toEqual([2, 8 + headerBytes + 16]);
  });

  test('appears complete or not at all, and nothing else is left in its folder', async () => {
    const path = file('atomic.safetensors');
    await saveSafetensors(path, { a: tensor([1]) });
    const gone = zeros([1]);
    gone.dispose();
    await expect(saveSafetensors(path, { a: gone })).rejects.toMatchObject({ code: 'ERR_TENSOR_DISPOSED' });
    await failure(saveSafetensors(join(directory, 'no', 'such', 'folder'), { a: tensor([1]) }));
    await failure(saveSafetensors(path, { __metadata__: tensor([1]) }));
    const metadata = { note: 'x', epoch: 3 } as never;
    await expect(saveSafetensors(path, { a: tensor([2]) }, metadata)).rejects.toThrow(
      'metadata: epoch: expected a string, got 3. The format knows strings only: write String(',
    );
    expect((await loadSafetensors(path)).a!.item()).toBe(1);
    expect((await readdir(directory)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  test('saving removes what ended processes of this host have left of the same file, and nothing else', async () => {
    const path = file('killed.safetensors');
    const { pid: dead } = spawnSync(process.execPath, ['--version']);
    const mine = `${path}.${hostname()}-${process.pid}-x.tmp`;
    const elsewhere = `${path}.another-host-${dead}-x.tmp`;
    for (const name of [`${path}.${hostname()}-${dead}-x.tmp`, mine, elsewhere])
      await writeFile(name, 'half');
    await saveSafetensors(path, { a: tensor([1]) });
    const left = (await readdir(directory)).filter((name) => name.startsWith('killed.safetensors.'));
    expect(left.sort()).toEqual([mine, elsewhere].map((name) => basename(name)).sort());
    for (const name of [mine, elsewhere]) await rm(name);
  });

  test('of another writer may be unaligned and in any order', async () => {
    const data = Buffer.alloc(12);
    data.writeFloatLE(1.5, 0);
    data.writeBigInt64LE(7n, 4);
    const header = {
      second: { dtype: 'I64', shape: [1], data_offsets: [4, 12] },
      first: { dtype: 'F32', shape: [], data_offsets: [0, 4] },
    };
    const loaded = await loadSafetensors(await handmade(`${JSON.stringify(header)} `, data));
    expect([loaded.first!.item(), loaded.second!.toArray()]).toEqual([1.5, [7]]);
  });
});

describe('dtypes that tensors do not have', () => {
  const bits = (...values: number[]): Buffer => Buffer.from(Uint8Array.from(values));
  const of = (array: NodeJS.ArrayBufferView): Buffer =>
    Buffer.from(array.buffer, array.byteOffset, array.byteLength);

  test.each<[code: string, data: Buffer, dtype: DType, values: number[]]>([
    ['I8', of(Int8Array.of(-128, 0, 127)), 'int32', [-128, 0, 127]],
    ['I16', of(Int16Array.of(-32768, 5, 32767)), 'int32', [-32768, 5, 32767]],
    ['U16', of(Uint16Array.of(0, 1, 65535)), 'int32', [0, 1, 65535]],
    ['U32', of(Uint32Array.of(0, 7, 2 ** 32 - 1)), 'int64', [0, 7, 2 ** 32 - 1]],
    ['U64', of(BigUint64Array.of(0n, 7n, 2n ** 53n - 1n)), 'int64', [0, 7, 2 ** 53 - 1]],
    ['BOOL', bits(0, 1, 200), 'bool', [0, 1, 1]],
    // PyTorch reads these bit patterns as these numbers.
    // biome-ignore format: beside each other
    ['F8_E4M3', bits(0x00, 0x01, 0x07, 0x08, 0x38, 0x7e, 0x7f, 0xff, 0xfe), 'float32', [0, 2 ** -9, 7 * 2 ** -9, 2 ** -6, 1, 448, NaN, NaN, -448]],
    // biome-ignore format: beside each other
    ['F8_E5M2', bits(0x80, 0x01, 0x04, 0x3c, 0x7b, 0x7c, 0x7d, 0xfc, 0xc2), 'float32', [-0, 2 ** -16, 2 ** -14, 1, 57344, Infinity, NaN, -Infinity, -3]],
    ['F8_E4M3FNUZ', bits(0x00, 0x01, 0x40, 0x7f, 0x80, 0xff), 'float32', [0, 2 ** -10, 1, 240, NaN, -240]],
    [
      'F8_E5M2FNUZ',
      bits(0x00, 0x01, 0x40, 0x7f, 0x80, 0xff),
      'float32',
      [0, 2 ** -17, 1, 57344, NaN, -57344],
    ],
    ['F8_E8M0', bits(0, 1, 127, 254, 255), 'float32', [2 ** -127, 2 ** -126, 1, 2 ** 127, NaN]],
  ])('%s is read without loss', async (code, data, dtype, values) => {
    // A byte in front of it leaves the tensor unaligned.
    const [count, end] = [values.length, 1 + data.length];
    const header = {
      first: { dtype: 'U8', shape: [1], data_offsets: [0, 1] },
      a: { dtype: code, shape: [count, 1], data_offsets: [1, end] },
    };
    const path = await handmade(header, Buffer.concat([bits(9), data]));
    const { a } = await loadSafetensors(path);
    expect([a!.dtype, a!.shape]).toEqual([dtype, [count, 1]]);
    expect(a!.flatten().toArray()).toEqual(values);
    await using opened = await openSafetensors(path);
    expect(opened.tensors.get('a')).toMatchObject({ dtype, stored: code });
    expect((await opened.readSlice('a', 1, 2)).flatten().toArray()).toEqual([values[1]]);
    await saveSafetensors(file('again.safetensors'), { a: a! });
    const again = await loadSafetensors(file('again.safetensors'));
    expect([again.a!.dtype, again.a!.flatten().toArray()]).toEqual([dtype, values]);
  });

  test('of more elements than are widened at a time, and of none', async () => {
    const data = Int16Array.from({ length: 700_001 }, (_, i) => (i % 60_000) - 30_000);
    const header = {
      a: { dtype: 'I16', shape: [data.length], data_offsets: [0, data.byteLength] },
      b: { dtype: 'U32', shape: [0, 2], data_offsets: [data.byteLength, data.byteLength] },
    };
    const { a, b } = await loadSafetensors(await handmade(header, of(data)));
    expect((a!.dataSync() as Int32Array).findIndex((value, i) => value !== data[i])).toBe(-1);
    expect(b).toMatchObject({ dtype: 'int64', shape: [0, 2] });
  });

  test('U64 that int64 does not hold is refused, and so is data of a wrong length', async () => {
    const header = { a: { dtype: 'U64', shape: [2], data_offsets: [0, 16] } };
    const { tensors: count } = await collected();
    const path = await handmade(header, of(BigUint64Array.of(1n, 2n ** 63n)));
    const { message } = await failure(loadSafetensors(path));
    expect(message).toContain(
      'tensor "a": element 1 is 9223372036854775808, and int64 holds at most 9223372036854775807',
    );
    expect(memory().tensors).toBe(count);
    const short = { a: { dtype: 'I16', shape: [2], data_offsets: [0, 8] } };
    expect((await failure(loadSafetensors(await handmade(short, 8)))).message).toContain(
      'tensor "a" with I16 [2] needs 4 bytes, but data_offsets hold 8',
    );
  });
});

describe('a file that is wrong is refused with its name, the tensor and the reason', () => {
  const f32 = (shape: unknown, ...offsets: unknown[]): object => ({
    dtype: 'F32',
    shape,
    data_offsets: offsets,
  });

  test.each<[reason: string, header: unknown, data: number, message: string]>([
    ['no JSON', '{"a":', 0, 'the header is not JSON'],
    ['no object', '[]', 0, 'the header is not a JSON object'],
    ['odd entry', { a: 5 }, 0, 'tensor "a" is not described by an object'],
    [
      'unknown dtype',
      { a: { dtype: 'F4', shape: [2], data_offsets: [0, 1] } },
      1,
      'tensor "a" has dtype "F4"; supported are F32, F64, F16, BF16',
    ],
    ['missing dtype', { a: { shape: [1], data_offsets: [0, 4] } }, 4, 'tensor "a" has dtype undefined'],
    [
      'inherited dtype',
      { a: { dtype: 'toString', shape: [1], data_offsets: [0, 4] } },
      4,
      'has dtype "toString"',
    ],
    ['negative size', { a: f32([-1], 0, 4) }, 4, 'tensor "a" has shape [-1]'],
    ['fractional size', { a: f32([0.5], 0, 4) }, 4, 'tensor "a" has shape [0.5]'],
    ['no shape', { a: f32('4', 0, 4) }, 4, 'tensor "a" has shape "4"'],
    ['odd offsets', { a: f32([1], 0) }, 4, 'tensor "a" has data_offsets [0]'],
    ['reversed offsets', { a: f32([1], 4, 0) }, 4, 'tensor "a" lies at 4 to 0, outside the 4 bytes of data'],
    ['offsets outside', { a: f32([2], 0, 8) }, 4, 'tensor "a" lies at 0 to 8, outside the 4 bytes of data'],
    [
      'wrong size',
      { a: f32([3], 0, 8) },
      8,
      'tensor "a" with F32 [3] needs 12 bytes, but data_offsets hold 8',
    ],
    ['huge shape', { a: f32([2 ** 40, 2 ** 40], 0, 8) }, 8, 'needs 4.835703278458517e+24 bytes'],
    [
      'overlap',
      { a: f32([2], 0, 8), b: f32([1], 4, 8) },
      8,
      'tensor "b" at 4 overlaps the one before, which ends at 8',
    ],
    ['gap', { a: f32([1], 0, 4), b: f32([1], 8, 12) }, 12, '4 bytes before tensor "b" belong to no tensor'],
    ['rest', { a: f32([1], 0, 4) }, 7, '3 bytes at the end belong to no tensor'],
    ['odd metadata', { __metadata__: { a: 1 } }, 0, '__metadata__ is not an object of strings'],
  ])('%s', async (_, header, data, message) => {
    const before = memory();
    const path = await handmade(header, data);
    const error = await failure(loadSafetensors(path));
    expect(error.message).toContain(`safetensors: ${path}: `);
    expect(error.message).toContain(message);
    expect(memory().allocations).toBe(before.allocations);
    expect(memory().tensors).toBeLessThanOrEqual(before.tensors); // the collector may take those of tests before
  });

  test('a header length that cannot be', async () => {
    for (const headerBytes of [2n ** 63n, 100_000_001n, 3n]) {
      const error = await failure(loadSafetensors(await handmade('{}', 0, headerBytes)));
      expect(error.message).toContain(`the header claims ${headerBytes} bytes, but at most 2 are possible`);
    }
  });

  test('bytes that are not UTF-8', async () => {
    const path = await handmade('{}', 0);
    const bytes = await readFile(path);
    bytes[8] = 0xff;
    await writeFile(path, bytes);
    expect((await failure(loadSafetensors(path))).message).toContain('the header is not UTF-8');
  });

  test('a file that ends early, at any byte', async () => {
    const path = file('whole.safetensors');
    await saveSafetensors(path, { a: tensor([1, 2, 3]) });
    const bytes = await readFile(path);
    const cut = file('cut.safetensors');
    for (let length = 0; length < bytes.length; length++) {
      await writeFile(cut, bytes.subarray(0, length));
      await failure(loadSafetensors(cut));
    }
    await failure(loadSafetensors(file('missing.safetensors')));
  });

  test('a name that objects treat specially is only a name', async () => {
    const text = '{"__proto__":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}';
    const loaded = await loadSafetensors(await handmade(text, 4));
    expect(Object.keys(loaded)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(loaded)).toBe(Object.prototype);
  });
});
