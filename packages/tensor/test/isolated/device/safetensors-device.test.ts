// Reads files directly to a device. By default, the software device runs each copy as late as it may, so a staging
// buffer that is overwritten too early gives a wrong result every time.
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  loadSafetensors,
  loadShardedSafetensors,
  openSafetensors,
  saveSafetensors,
  saveShardedSafetensors,
} from '../../../src/files/safetensors/index.ts';
import {
  arange,
  CudaStream,
  emptyCache,
  memory,
  ones,
  scope,
  synchronize,
  withStream,
} from '../../../src/index.ts';
import { Linear } from '../../../src/nn/index.ts';
import { collected } from '../../support/collected.ts';
import { cudaDevice } from '../../support/cuda-device.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-device-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const at = (name: string): string => join(folder, name);
const device = 'cuda';

/** Writes a file with one int32 tensor that counts from 0, without making that tensor. */
function writeCounting(path: string, rows: number, cols: number): void {
  const data = Int32Array.from({ length: rows * cols }, (_, i) => i);
  const said = { x: { dtype: 'I32', shape: [rows, cols], data_offsets: [0, data.byteLength] } };
  const header = Buffer.from(JSON.stringify(said).padEnd(96));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  writeFileSync(path, Buffer.concat([length, header, Buffer.from(data.buffer)]));
}

describe.skipIf(cudaDevice === null)(`safetensors to ${cudaDevice?.name}`, () => {
  test('gives everything back, also when the file ends too early', async () => {
    writeCounting(at('m.safetensors'), 3000, 1000);
    const count = (await collected(device)).tensors;
    await scope(() => loadSafetensors(at('m.safetensors'), { device }).then(() => undefined));
    expect(memory(device).tensors).toBe(count);
    await using file = await openSafetensors(at('m.safetensors'));
    truncateSync(at('m.safetensors'), 5_000_000);
    await expect(file.read('x', { device })).rejects.toThrow('ends inside tensor "x"; the file is truncated');
    expect(memory(device).tensors).toBe(count);
    await scope(async () => {
      expect((await file.readSlice('x', 0, 1, { device })).at(0, 999).item()).toBe(999);
    });
    expect(memory(device).tensors).toBe(count);
    synchronize(device);
    emptyCache();
  });

  test('the host holds pieces of a file, never the whole', async () => {
    const [rows, cols] = [7000, 1000]; // 28 MB, six pieces and a part
    writeCounting(at('m.safetensors'), rows, cols);
    const before = { there: (await collected(device)).bytes, host: memory() };
    const { x } = await loadSafetensors(at('m.safetensors'), { device });
    expect([x!.device, x!.dtype, x!.shape]).toEqual(['cuda:0', 'int32', [rows, cols]]);
    expect(memory(device).bytes - before.there).toBe(4 * rows * cols);
    const after = memory();
    expect(after.bytes).toBe(before.host.bytes);
    expect(after.peakBytes).toBeLessThanOrEqual(Math.max(before.host.peakBytes, before.host.bytes + 2 ** 23));
    expect(memory(device).pinnedBytes).toBeLessThan(4 * rows * cols);
    const elements = x!.dataSync() as Int32Array;
    expect(elements.findIndex((value, i) => value !== i)).toBe(-1);
  });

  test('all dtypes, no elements, and rows of a tensor; many at once', async () => {
    const tensors = {
      a: arange(12).reshape([4, 3]),
      b: arange(5).to('int64'),
      c: ones([7]).to('bfloat16'),
      d: ones([3]).to('bool'),
      scalar: ones([]),
      empty: ones([0, 2]),
    };
    await saveSafetensors(at('m.safetensors'), tensors);
    const got = await loadSafetensors(at('m.safetensors'), { device: 'cuda:0' });
    for (const [name, tensor] of Object.entries(tensors)) {
      expect([name, got[name]!.device, got[name]!.dtype, got[name]!.toArray()]).toEqual([
        name,
        'cuda:0',
        tensor.dtype,
        tensor.toArray(),
      ]);
    }
    await using file = await openSafetensors(at('m.safetensors'));
    const parts = await Promise.all([0, 1, 2, 3].map((row) => file.readSlice('a', row, row + 1, { device })));
    expect(parts.map((part) => part.toArray())).toEqual([
      [[0, 1, 2]],
      [[3, 4, 5]],
      [[6, 7, 8]],
      [[9, 10, 11]],
    ]);
    expect((await file.read('a')).device).toBe('cpu');
  });

  test('dtypes that tensors do not have are widened piece by piece', async () => {
    const data = Int16Array.from({ length: 2_500_003 }, (_, i) => (i % 60_000) - 30_000);
    const wide = BigUint64Array.of(3n, 2n ** 63n - 1n);
    const header = {
      a: { dtype: 'I16', shape: [data.length], data_offsets: [0, data.byteLength] },
      b: { dtype: 'BOOL', shape: [2], data_offsets: [data.byteLength, data.byteLength + 2] },
      c: { dtype: 'U64', shape: [2], data_offsets: [data.byteLength + 2, data.byteLength + 18] },
    };
    const text = Buffer.from(JSON.stringify(header));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    const parts = [Buffer.from(data.buffer), Buffer.from([7, 0]), Buffer.from(wide.buffer)];
    writeFileSync(at('m.safetensors'), Buffer.concat([length, text, ...parts]));
    const { a, b, c } = await loadSafetensors(at('m.safetensors'), { device });
    expect([a!.dtype, b!.toArray(), c!.dataSync()]).toEqual(['int32', [1, 0], BigInt64Array.from(wide)]);
    expect((a!.dataSync() as Int32Array).findIndex((value, i) => value !== data[i])).toBe(-1);
    writeFileSync(
      at('m.safetensors'),
      Buffer.concat([length, text, ...parts.slice(0, 2), Buffer.alloc(16, 255)]),
    );
    await expect(loadSafetensors(at('m.safetensors'), { device })).rejects.toThrow(
      'tensor "c": element 0 is',
    );
  });

  test('into a model, from shards, on a stream of its own', async () => {
    const layer = new Linear(3, 2);
    const index = await saveShardedSafetensors(at('model'), layer.stateDict(), { maxShardBytes: 24 });
    const side = new CudaStream(device);
    const there = new Linear(3, 2).to(device);
    const state = await withStream(side, () => loadShardedSafetensors(index, undefined, { device }));
    await side.done();
    there.loadStateDict(state);
    expect(there.weight.toArray()).toEqual(layer.weight.toArray());
    expect(there.bias!.toArray()).toEqual(layer.bias!.toArray());
  });

  test('reads on two streams do not overwrite pieces that the other still copies', async () => {
    writeCounting(at('m.safetensors'), 4000, 1000); // two parts of 8 MB, two pieces each
    await using file = await openSafetensors(at('m.safetensors'));
    const side = new CudaStream(device);
    const first = await withStream(side, () => file.readSlice('x', 0, 2000, { device }));
    const second = await file.readSlice('x', 2000, 4000, { device });
    await side.done();
    for (const [begin, part] of [first, second].entries()) {
      const elements = part.dataSync() as Int32Array;
      expect(elements.findIndex((value, i) => value !== 2_000_000 * begin + i)).toBe(-1);
    }
  });

  test('devices that do not exist are refused by name', async () => {
    await saveSafetensors(at('m.safetensors'), { a: ones([2]) });
    await expect(loadSafetensors(at('m.safetensors'), { device: 'cuda:99' })).rejects.toThrow(
      /cuda:99: there is no such device/,
    );
    await expect(loadSafetensors(at('m.safetensors'), { device: 'gpu' as never })).rejects.toThrow(
      "device: expected 'cpu', 'cuda' or 'cuda:N', got 'gpu'",
    );
  });
});
