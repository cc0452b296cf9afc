import { checkIndex } from '../check.ts';
import type { Dataset } from './dataset.ts';

/** Concatenates data sets. Batches are collated from single samples, without `getBatch`. */
export function concatDatasets<T>(datasets: readonly Dataset<T, unknown>[]): Dataset<T> {
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
