// Argument checks that several files use.

import { badFile, badIndex, emptyDataset, outOfRange } from './errors.ts';
import { shareHint } from './options.ts';

export function checkInteger(
  what: string,
  value: number,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
  next?: string,
): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  throw outOfRange(what, `an integer ${range}`, value, next);
}

/** Checks which share of the samples a rank takes. */
export function checkShare(what: string, replicas: number, rank: number): void {
  checkInteger(`${what}: replicas`, replicas, 1, undefined, replicas === undefined ? shareHint : undefined);
  checkInteger(`${what}: rank`, rank, 0, replicas - 1, rank === undefined ? shareHint : undefined);
}

/** Checks that `list` is an array, a typed array or another object with an integer `length`. */
export function checkArrayLike(what: string, list: unknown): void {
  const length: unknown = (list as { readonly length?: unknown } | null | undefined)?.length;
  if (typeof list === 'object' && Number.isSafeInteger(length)) return;
  throw outOfRange(what, 'an array', list);
}

/** Checks the number of samples for a sampler: indices are int32, and an empty data set is an error. */
export function checkLength(sampler: string, length: number, most = 2 ** 31 - 1): void {
  if (length === 0) throw emptyDataset(sampler);
  checkCount(sampler, length, 1, most);
}

/** Checks a number of samples, in place of which PyTorch's samplers take the data set. */
export function checkCount(sampler: string, length: number, least: number, most = 2 ** 31 - 1): void {
  const isDataset = typeof length === 'object' && length !== null && 'length' in length;
  const next = isDataset ? 'Pass the length of the data set: dataset.length.' : undefined;
  checkInteger(`${sampler}: length`, length, least, most, next);
}

export function checkIndex(dataset: string, index: number, length: number): void {
  if (!(Number.isInteger(index) && index >= 0 && index < length)) throw badIndex(dataset, index, length);
}

export function checkPath(what: string, path: unknown): void {
  if (typeof path !== 'string' || path === '') throw outOfRange(what, 'a path, as a string', path);
}

/**
 * Checks that a file claims at most as many rows as it has bytes. Otherwise a tiny file could claim any number of rows
 * of zero bytes, and a sampler allocates memory for each row.
 */
export function checkRows(
  reader: string,
  { path, size }: { readonly path: string; readonly size: number },
  rows: number,
): void {
  if (rows <= size) return;
  const what = ['rows without bytes', `at most ${size}, as many as the file has bytes`, `${rows}`] as const;
  throw badFile(reader, path, what, 'The header is likely damaged.');
}
