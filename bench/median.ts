/** Returns the median of some numbers, the mean of the middle two if their count is even; NaN without numbers. */
export function median(values: Iterable<number>): number {
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}
