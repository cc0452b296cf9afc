import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadMnist, writeIdx } from '../../../src/formats/idx/index.ts';

// The real data, if RINGWISE_TEST_DATA names a folder that contains a folder mnist.
const realMnist = join(process.env.RINGWISE_TEST_DATA || '/nonexistent', 'mnist');

describe('loadMnist', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ringwise-mnist-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const images = { data: Uint8Array.from({ length: 24 }, (_, i) => i), shape: [2, 3, 4] };
  const labels = { data: Uint8Array.of(3, 9), shape: [2] };
  const write = (imagesName: string, labelsName: string, given = { images, labels }) =>
    Promise.all([
      writeIdx(join(folder, imagesName), given.images),
      writeIdx(join(folder, labelsName), given.labels),
    ]);

  it.each(['-idx', '.idx'])('finds files named …%s…, compressed or not', async (dash) => {
    await write(`train-images${dash}3-ubyte`, `train-labels${dash}1-ubyte.gz`);
    expect(await loadMnist(folder)).toEqual({ images, labels });
    await write(`t10k-images${dash}3-ubyte.gz`, `t10k-labels${dash}1-ubyte`);
    expect(await loadMnist(folder, { split: 'test' })).toEqual({ images, labels });
  });

  it('names the files that it looked for', async () => {
    await expect(loadMnist(folder, { split: 'test' })).rejects.toMatchObject({
      code: 'ERR_DATA_NOT_FOUND',
      message:
        'loadMnist: found none of t10k-images-idx3-ubyte, t10k-images-idx3-ubyte.gz, t10k-images.idx3-ubyte, ' +
        `t10k-images.idx3-ubyte.gz (${folder}). Name the folder that holds the four IDX files.`,
    });
    await writeIdx(join(folder, 'train-images-idx3-ubyte'), images);
    await expect(loadMnist(folder)).rejects.toThrow('found none of train-labels-idx1-ubyte,');
  });

  it('refuses labels that do not belong to the images', async () => {
    const more = { data: Uint8Array.of(1, 2, 3), shape: [3] };
    await write('train-images-idx3-ubyte', 'train-labels-idx1-ubyte', { images, labels: more });
    await expect(loadMnist(folder)).rejects.toThrow('expected 2 labels, one per image, got 3 (');
  });

  it('refuses other types and shapes', async () => {
    await write('train-images-idx3-ubyte', 'train-labels-idx1-ubyte', { images: labels, labels });
    await expect(loadMnist(folder)).rejects.toThrow(
      'expected Uint8Array with 3 dimensions, got Uint8Array with 1',
    );
  });

  it.skipIf(!existsSync(realMnist))('reads the real test split', async () => {
    const { images: real, labels: digits } = await loadMnist(realMnist, { split: 'test' });
    expect(real.shape).toEqual([10_000, 28, 28]);
    expect([...digits.data.subarray(0, 10)]).toEqual([7, 2, 1, 0, 4, 1, 4, 9, 5, 9]);
    const perDigit = new Array<number>(10).fill(0);
    for (const digit of digits.data) perDigit[digit]! += 1;
    expect(perDigit).toEqual([980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
    let sum = 0;
    for (const pixel of real.data) sum += pixel;
    expect(sum / real.data.length / 255).toBeCloseTo(0.1325, 3);
  });
});
