import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TokenFile } from '../../../src/formats/tokens/index.ts';
import { DataLoader } from '../../../src/index.ts';

let folder: string;
let path: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tokens-'));
  path = join(folder, 'train.bin');
  writeFileSync(
    path,
    Uint16Array.from({ length: 11 }, (_, i) => 65_000 + i),
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const from = (first: number, count: number) => Array.from({ length: count }, (_, i) => 65_000 + first + i);

describe('TokenFile', () => {
  it('gives windows one after the other, so that each token but the first is predicted at most once', () => {
    using file = new TokenFile(path, { block: 3 });
    expect([file.tokenCount, file.length]).toEqual([11, 3]);
    for (let i = 0; i < 3; i++) {
      const { x, y } = file.get(i);
      expect([x.shape, [...x.data], [...y.data]]).toEqual([[3], from(3 * i, 3), from(3 * i + 1, 3)]);
    }
  });

  it('has a last window that ends at the last token, and one window for a file of block + 1', () => {
    using everyPlace = new TokenFile(path, { block: 4, stride: 1 });
    expect(everyPlace.length).toBe(7);
    expect([...everyPlace.get(6).y.data]).toEqual(from(7, 4));
    using whole = new TokenFile(path, { block: 10 });
    expect(whole.length).toBe(1);
  });

  it('makes a batch for the loader', () => {
    using file = new TokenFile(path, { block: 3 });
    const [batch] = new DataLoader(file, { batchSize: 2, sampler: [2, 0] });
    expect(batch!.x).toEqual({ data: Int32Array.from([...from(6, 3), ...from(0, 3)]), shape: [2, 3] });
    expect(batch!.y).toEqual({ data: Int32Array.from([...from(7, 3), ...from(1, 3)]), shape: [2, 3] });
  });

  it('reads uint32', () => {
    const wide = join(folder, 'wide.bin');
    writeFileSync(wide, Uint32Array.of(100_000, 2 ** 31 - 1, 5));
    using file = new TokenFile(wide, { block: 2, dtype: 'uint32' });
    expect([...file.get(0).x.data, ...file.get(0).y.data]).toEqual([100_000, 2 ** 31 - 1, 2 ** 31 - 1, 5]);
    writeFileSync(wide, Uint32Array.of(1, 2, 3, 4, 2 ** 31));
    using large = new TokenFile(wide, { block: 2, dtype: 'uint32' });
    expect([...large.get(0).y.data]).toEqual([2, 3]);
    expect(() => large.get(1)).toThrow(
      expect.objectContaining({
        code: 'ERR_DATA_FILE',
        message: `TokenFile: token 4 is too large; expected tokens below 2^31, got ${2 ** 31} (${wide}). Is the dtype another one?`,
      }),
    );
  });

  it('refuses a file that is too short or of another type, an index outside, and reads after close', () => {
    const odd = join(folder, 'odd.bin');
    writeFileSync(odd, new Uint8Array(5));
    const failed = expect.objectContaining({ code: 'ERR_DATA_FILE' });
    expect(() => new TokenFile(path, { block: 11 })).toThrow(
      'expected at least 12 tokens for a block of 11, got 11',
    );
    expect(() => new TokenFile(odd, { block: 1 })).toThrow('expected a multiple of 2 bytes, got 5');
    expect(() => new TokenFile(odd, { block: 1 })).toThrow(failed);
    expect(() => new TokenFile(join(folder, 'none.bin'), { block: 1 })).toThrow('ENOENT');
    const file = new TokenFile(path, { block: 3 });
    expect(() => file.get(3)).toThrow(
      'TokenFile: index 3 is outside the data set; expected an integer from 0 to 2',
    );
    file.close();
    file.close();
    expect(() => file.get(0)).toThrow('the file was closed');
  });

  it('reports a file that has become shorter', () => {
    const shrinking = join(folder, 'shrinking.bin');
    writeFileSync(shrinking, new Uint16Array(9));
    using file = new TokenFile(shrinking, { block: 8 });
    truncateSync(shrinking, 10);
    expect(() => file.get(0)).toThrow('expected 18 bytes, got 10');
  });
});
