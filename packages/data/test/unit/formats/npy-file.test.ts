import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NpyFile } from '../../../src/formats/npy/index.ts';
import { DataLoader } from '../../../src/index.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'npy-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes what numpy.save writes: magic, version, a header padded to a multiple of 64 bytes, elements. */
function write(name: string, header: string, data: NodeJS.ArrayBufferView, version = 1): string {
  const before = version === 1 ? 10 : 12;
  const length = Math.ceil((before + header.length + 1) / 64) * 64 - before;
  const start = Buffer.alloc(before);
  start.write('\x93NUMPY', 'latin1');
  start[6] = version;
  if (version === 1) start.writeUInt16LE(length, 8);
  else start.writeUInt32LE(length, 8);
  const text = `${header.padEnd(length - 1)}\n`;
  const path = join(folder, name);
  const elements = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  writeFileSync(path, Buffer.concat([start, Buffer.from(text, 'latin1'), elements]));
  return path;
}

const dict = (descr: string, shape: string, fortran = 'False') =>
  `{'descr': '${descr}', 'fortran_order': ${fortran}, 'shape': ${shape}, }`;

describe('NpyFile', () => {
  it('has the rows of the array as its samples', () => {
    const values = Float32Array.from({ length: 24 }, (_, i) => i / 2);
    using file = new NpyFile<Float32Array>(write('rows.npy', dict('<f4', '(4, 2, 3)'), values));
    expect([file.length, file.shape]).toEqual([4, [4, 2, 3]]);
    expect(file.get(2)).toEqual({ data: values.slice(12, 18), shape: [2, 3] });
    const [batch] = new DataLoader(file, { batchSize: 2, sampler: [3, 1] });
    expect(batch).toEqual({
      data: Float32Array.of(...values.slice(18), ...values.slice(6, 12)),
      shape: [2, 2, 3],
    });
  });

  it.each([
    ['|b1', Uint8Array.of(1, 0)],
    ['|u1', Uint8Array.of(255, 1)],
    ['|i1', Int8Array.of(-128, 1)],
    ['<u2', Uint16Array.of(65_535, 1)],
    ['<i2', Int16Array.of(-2, 1)],
    ['<u4', Uint32Array.of(2 ** 32 - 1, 1)],
    ['<i4', Int32Array.of(-2, 1)],
    ['<u8', BigUint64Array.of(2n ** 63n, 1n)],
    ['<i8', BigInt64Array.of(-2n, 1n)],
    ['<f8', Float64Array.of(Math.PI, -0)],
  ])('reads %s', (descr, values) => {
    using file = new NpyFile(write('type.npy', dict(descr, '(2,)'), values));
    expect(file.getBatch([0, 1])).toEqual({ data: values, shape: [2] });
    expect(file.get(1).shape).toEqual([]);
  });

  it('reads big-endian elements and the longer header of version 2', () => {
    const bigEndian = Buffer.from([0, 1, 0xff, 0xfe]);
    using file = new NpyFile(write('big.npy', dict('>i2', '(2,)'), bigEndian, 2));
    expect(file.getBatch([0, 1]).data).toEqual(Int16Array.of(1, -2));
  });

  it('reads one dimension in Fortran order, which is C order', () => {
    using file = new NpyFile(write('vector.npy', dict('<i4', '(3,)', 'True'), Int32Array.of(7, 8, 9)));
    expect(file.get(1).data).toEqual(Int32Array.of(8));
  });

  it.each([
    [
      'Fortran order',
      dict('<i4', '(2, 2)', 'True'),
      new Int32Array(4),
      'expected C order, got Fortran order',
    ],
    ['float16', dict('<f2', '(2,)'), new Uint16Array(2), 'expected a shape and one of the types b1'],
    ['text', dict('<U4', '(1,)'), new Uint8Array(16), 'expected a shape and one of the types b1'],
    ['a single number', dict('<f4', '()'), new Float32Array(1), 'expected at least one dimension'],
    ['a negative size', dict('<f4', '(-1,)'), new Float32Array(1), 'expected a shape, got (-1,)'],
    ['too few elements', dict('<f4', '(3,)'), new Float32Array(2), 'bytes for <f4 [3], got'],
    ['trailing bytes', dict('<f4', '(1,)'), new Float32Array(2), 'bytes for <f4 [1], got'],
    [
      'a size beyond all files',
      dict('<f4', '(9007199254740991, 4096)'),
      new Float32Array(2),
      'bytes for <f4',
    ],
  ])('refuses %s', (_, header, data, message) => {
    const path = write('bad.npy', header, data);
    expect(() => new NpyFile(path)).toThrow(expect.objectContaining({ code: 'ERR_DATA_FILE' }));
    expect(() => new NpyFile(path)).toThrow(message);
  });

  it('refuses other files', () => {
    const path = join(folder, 'other');
    writeFileSync(path, 'x'.repeat(100));
    expect(() => new NpyFile(path)).toThrow('expected the beginning \\x93NUMPY, got 787878787878');
    writeFileSync(path, 'short');
    expect(() => new NpyFile(path)).toThrow('expected a header, got a file of 5 bytes');
    writeFileSync(path, Buffer.from('\x93NUMPY\x01\x00\xff\xff\x00\x00', 'latin1'));
    expect(() => new NpyFile(path)).toThrow('expected a header of at most 2 bytes, got 65535');
  });
});
