/**
 * Returns the known word that a misspelled word most likely means: one that starts with it, else one at most
 * 3 edits away, fewer for a short word.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const longer = known.find((candidate) => candidate.startsWith(word));
  if (longer) return longer;
  const ranked = known
    .map((candidate) => ({ candidate, edits: editDistance(word, candidate) }))
    .sort((a, b) => a.edits - b.edits);
  const most = Math.min(3, Math.ceil(word.length / 2));
  return ranked[0] && ranked[0].edits <= most ? ranked[0].candidate : undefined;
}

// Levenshtein distance. row[j] is the distance between the read part of `a` and the first j letters of `b`.
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
