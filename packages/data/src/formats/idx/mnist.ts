// Reads MNIST, and data sets with the same file names (Fashion-MNIST, KMNIST): images and labels of one
// split.

import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { checkPath } from '../../check.ts';
import { badMnist, noMnistFile, outOfRange } from '../../errors.ts';
import { checkedOptions, optionNames } from '../../options.ts';
import { type NdArray, typeName } from '../../typed-array.ts';
import { type IdxArray, readIdx } from './idx-file.ts';

/** The images and labels of one part of MNIST. */
export interface MnistSplit {
  /** Shape [count, rows, columns]; 0 is background. */
  readonly images: NdArray<Uint8Array>;
  /** Shape [count]. */
  readonly labels: NdArray<Uint8Array>;
}

/** Options of loadMnist(). */
export interface LoadMnistOptions {
  /** Default 'train'. */
  readonly split?: 'train' | 'test';
}

const names = optionNames<LoadMnistOptions>({ split: true });

/**
 * Reads train-images-idx3-ubyte and train-labels-idx1-ubyte (for 'test': t10k-…) from `folder`, each with or
 * without .gz and with '-' or '.' before 'idx'. Rejects with ERR_DATA_NOT_FOUND, which lists the names that were
 * tried, or as readIdx() does.
 */
export async function loadMnist(folder: string, options?: LoadMnistOptions): Promise<MnistSplit> {
  checkPath('loadMnist: folder', folder);
  const { split = 'train' } = checkedOptions('loadMnist', options, names);
  if (split !== 'train' && split !== 'test') throw outOfRange('loadMnist: split', "'train' or 'test'", split);
  const prefix = split === 'train' ? 'train' : 't10k';
  const imagesFile = await find(folder, `${prefix}-images`, 'idx3-ubyte');
  const labelsFile = await find(folder, `${prefix}-labels`, 'idx1-ubyte');
  const images = checkBytes(await readIdx(imagesFile), 3, imagesFile);
  const labels = checkBytes(await readIdx(labelsFile), 1, labelsFile);
  if (images.shape[0] !== labels.shape[0]) {
    throw badMnist(labelsFile, `${images.shape[0]} labels, one per image`, `${labels.shape[0]}`);
  }
  return { images, labels };
}

async function find(folder: string, stem: string, suffix: string): Promise<string> {
  const names = ['-', '.'].flatMap((dash) => ['', '.gz'].map((end) => `${stem}${dash}${suffix}${end}`));
  for (const name of names) {
    const path = join(folder, name);
    const isThere = await access(path).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  throw noMnistFile(folder, names);
}

function checkBytes(
  { data, shape }: NdArray<IdxArray>,
  dimensions: number,
  file: string,
): NdArray<Uint8Array> {
  if (data instanceof Uint8Array && shape.length === dimensions) return { data, shape };
  throw badMnist(file, `Uint8Array with ${dimensions} dimensions`, `${typeName(data)} with ${shape.length}`);
}
