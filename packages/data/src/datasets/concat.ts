import { checkIndex } from '../check.ts';
import { nothingThere, outOfRange } from '../errors.ts';
import { checkedDataset, type Dataset } from './dataset.ts';

/** Concatenates data sets or arrays. Batches are collated from single samples, without `getBatch`. */
export function concatDatasets<T>(parts: readonly (Dataset<T, unknown> | readonly T[])[]): Dataset<T> {
  const what = 'concatDatasets: datasets';
  if (!Array.isArray(parts)) throw outOfRange(what, 'an array of data sets', parts);
  if (parts.length === 0) throw nothingThere(what, 'at least one data set');
  const datasets = parts.map((part, i) => checkedDataset<T, unknown>(`${what}[${i}]`, part));
  let length = 0;
  const ends = datasets.map((dataset) => (length += dataset.length));
  return {
    length,
    get: (index) => {
      checkIndex('concatDatasets', index, length);
      const which = ends.findIndex((end) => index < end);
      return datasets[which]!.get(index - (which > 0 ? ends[which - 1]! : 0));
    },
  };
}
