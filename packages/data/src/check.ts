// Argument checks that several files use.

import { badFile, badIndex, emptyDataset, outOfRange } from './errors.ts';

export function checkInteger(
  what: string,
  value: number,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  throw outOfRange(what, `an integer ${range}`, value);
}

/** Checks that `list` is an array or a typed array. */
export function checkArrayLike(what: string, list: unknown): void {
  const length: unknown = (list as { readonly length?: unknown } | null | undefined)?.length;
  if (typeof list === 'object' && Number.isSafeInteger(length)) return;
  throw outOfRange(what, 'an array', list);
}

/** Checks a length for a sampler: an index is an int32, and an empty data set is reported as a mistake. */
export function checkLength(sampler: string, length: number): void {
  if (length === 0) throw emptyDataset(sampler);
  checkInteger(`${sampler}: length`, length, 1, 2 ** 31 - 1);
}

export function checkIndex(dataset: string, index: number, length: number): void {
  if (!(Number.isInteger(index) && index >= 0 && index < length)) throw badIndex(dataset, index, length);
}

export function checkPath(what: string, path: unknown): void {
  if (typeof path !== 'string' || path === '') throw outOfRange(what, 'a path, as a string', path);
}

/**
 * Checks the number of rows that a file claims. Rows without bytes cost a file nothing, so it must not claim
 * more of them than a sampler has memory for.
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
