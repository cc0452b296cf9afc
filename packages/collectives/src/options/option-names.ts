// Finds option names that a call does not know, because a misspelled name would silently leave the default in effect.

/**
 * Returns a description of the first fault in `options`: that it is not an object, or an own key that is not in
 * `known`. Returns null if there is no fault or `options` is undefined. `renamed` maps names of other libraries to
 * ours. Allocates nothing if all keys are known.
 */
export function unknownOption(
  options: unknown,
  known: readonly string[],
  renamed: Readonly<Record<string, string>> = {},
): string | null {
  if (options === undefined) return null;
  if (typeof options !== 'object' || options === null || isList(options)) {
    return `options are ${kindOf(options)}; expected an object`;
  }
  for (const key in options) {
    if (known.includes(key) || !Object.hasOwn(options, key)) continue;
    return `unknown option '${key}'; ${suggestion(key, known, renamed)}`;
  }
  return null;
}

/** Returns the end of the sentence: the name that was probably meant, or all known names. */
function suggestion(
  key: string,
  known: readonly string[],
  renamed: Readonly<Record<string, string>>,
): string {
  const ours = Object.hasOwn(renamed, key) ? renamed[key] : known.find((name) => plain(name) === plain(key));
  if (ours !== undefined) return `expected '${ours}'`;
  const [nearest, distance] = known
    .map((name) => [name, editDistance(plain(key), plain(name))] as const)
    .reduce((best, next) => (next[1] < best[1] ? next : best), ['', Number.POSITIVE_INFINITY] as const);
  if (distance <= Math.min(2, nearest.length / 2) || distance <= nearest.length / 3)
    return `did you mean '${nearest}'`;
  return known.length === 0 ? 'expected no options' : `expected ${known.join(', ')}`;
}

/** Normalizes a name, so that snake_case, kebab-case and camelCase compare equal. */
function plain(name: string): string {
  return name.replace(/[_-]/g, '').toLowerCase();
}

/** Returns the Levenshtein distance: the least number of letters to insert, delete or replace. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}

function isList(value: object): boolean {
  return Array.isArray(value) || ArrayBuffer.isView(value);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value !== 'object') return `a ${typeof value}`;
  return Array.isArray(value) ? 'an array' : 'a typed array';
}
