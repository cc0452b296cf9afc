// Parses sizes, and lists the sizes that a run measures.

const units = ['', 'K', 'M', 'G'];

/** Returns the bytes of '4', '64K', '16M' or '1G'; null for any other text. */
export function parseBytes(text: string): number | null {
  const match = /^(\d+)([KMG]?)(?:i?B)?$/i.exec(text);
  if (!match) return null;
  const bytes = Number(match[1]) * 1024 ** units.indexOf(match[2]!.toUpperCase());
  return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : null;
}

export interface SizeRange {
  readonly min: number;
  readonly max: number;
  readonly factor: number;
}

/**
 * Returns the element counts per part for all sizes: each size in bytes, rounded down to whole elements in
 * each of `parts` parts, but at least one. Counts that become equal are listed once.
 */
export function partCounts({ min, max, factor }: SizeRange, parts: number, elementBytes: number): number[] {
  const counts = new Set<number>();
  for (let bytes = min; bytes <= max; bytes *= factor) {
    counts.add(Math.max(1, Math.floor(bytes / (parts * elementBytes))));
  }
  return [...counts];
}
