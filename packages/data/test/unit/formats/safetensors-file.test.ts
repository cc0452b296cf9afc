import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SafetensorsFile } from '../../../src/formats/safetensors/index.ts';
import { DataLoader } from '../../../src/index.ts';

let folder: string;
let path: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'safetensors-'));
  path = join(folder, 'samples.safetensors');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a safetensors file without the code under test. */
function write(header: unknown, ...parts: readonly NodeJS.ArrayBufferView[]): string {
  const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const data = parts.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength));
  writeFileSync(path, Buffer.concat([length, text, ...data]));
  return path;
}

const tensor = (dtype: string, shape: readonly number[], from: number, to: number) => ({
  dtype,
  shape,
  data_offsets: [from, to],
});

const x = Float32Array.from({ length: 12 }, (_, i) => i / 4);
const label = BigInt64Array.of(7n, -8n, 2n ** 40n);
const table = {
  __metadata__: { a: 'b' },
  x: tensor('F32', [3, 2, 2], 0, 48),
  label: tensor('I64', [3], 48, 72),
};

describe('SafetensorsFile', () => {
  it('has one row of every tensor as a sample, and gives a loader batches', () => {
    using file = new SafetensorsFile(write(table, x, label));
    expect(file.length).toBe(3);
    expect(file.get(1)).toEqual({
      x: { data: x.slice(4, 8), shape: [2, 2] },
      label: { data: BigInt64Array.of(-8n), shape: [] },
    });
    const [batch] = new DataLoader(file, { batchSize: 2, sampler: [2, 0] });
    expect(batch).toEqual({
      x: { data: Float32Array.of(...x.slice(8), ...x.slice(0, 4)), shape: [2, 2, 2] },
      label: { data: BigInt64Array.of(2n ** 40n, 7n), shape: [2] },
    });
    expect(() => file.get(3)).toThrow('SafetensorsFile: index 3 is outside the data set');
  });

  it.each([
    [
      'rows that differ',
      { x: tensor('U8', [2], 0, 2), y: tensor('U8', [3], 2, 5) },
      '2 rows in every tensor, as in "x", got 3 in "y"',
    ],
    ['a type without a typed array', { x: tensor('BF16', [2], 0, 4) }, 'for "x", got BF16'],
    ['a scalar', { x: tensor('U8', [], 0, 1) }, 'a shape of at least one dimension for "x", got []'],
    ['a range of another size', { x: tensor('U8', [2], 0, 3) }, 'a range of 2 bytes for "x", got [0,3]'],
    ['a negative size', { x: tensor('U8', [-2], 0, 2) }, 'a shape of at least one dimension'],
    ['a range beyond the file', { x: tensor('U8', [99], 0, 99) }, 'bytes with "x" in them'],
    ['no tensor', { __metadata__: {} }, 'at least one tensor, got none'],
    ['something else in the header', { x: null }, 'for "x", got null'],
    ['no JSON in the header', '{"x"', 'a header of JSON'],
  ])('refuses %s', (_, header, what) => {
    const file = write(header, new Uint8Array(8));
    expect(() => new SafetensorsFile(file)).toThrow(what);
    expect(() => new SafetensorsFile(file)).toThrow(expect.objectContaining({ code: 'ERR_DATA_FILE' }));
    expect(() => new SafetensorsFile(file)).toThrow(`(${file})`);
  });

  it('refuses a file that is cut off anywhere', () => {
    const whole = readFileSync(write(table, x, label));
    for (let length = 0; length < whole.length; length += 7) {
      writeFileSync(path, whole.subarray(0, length));
      expect(() => new SafetensorsFile(path)).toThrow('SafetensorsFile: not a table of samples');
    }
  });
});
