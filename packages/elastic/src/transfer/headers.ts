// Headers of packed states: JSON with a placeholder for each array.

/** Describes the first path at which two trees differ; `sides` names the owner of each tree. */
export function firstDifference(
  a: unknown,
  b: unknown,
  path = 'state',
  sides: readonly [string, string] = ['on one', 'on the other'],
): string {
  const isTree = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null;
  if (!isTree(a) || !isTree(b))
    return `${path} is ${JSON.stringify(a)} ${sides[0]} and ${JSON.stringify(b)} ${sides[1]}`;
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  const odd = keys.find((key) => JSON.stringify(a[key]) !== JSON.stringify(b[key]));
  return odd === undefined
    ? `${path} has another order`
    : firstDifference(a[odd], b[odd], `${path}.${odd}`, sides);
}

type Tree = Readonly<Record<string, unknown>>;

/** Returns the offsets of the arrays under a node of a header. */
function offsetsUnder(node: unknown): number[] {
  if (typeof node !== 'object' || node === null) return [];
  const { $array, $tensor } = node as { readonly $array?: Location; readonly $tensor?: Location };
  const location = $array ?? $tensor;
  return location === undefined ? Object.values(node).flatMap(offsetsUnder) : [location.offset];
}

interface Location {
  readonly offset: number;
}

/** Returns the members whose headers are equal in two states and that have no array at an offset in `changed`. */
export function unchangedMembers(own: string, theirs: string, changed: ReadonlySet<number>): Set<string> {
  const [a, b] = [JSON.parse(own) as Tree, JSON.parse(theirs) as Tree];
  const names = Object.keys(b).filter((name) => {
    if (JSON.stringify(a[name]) !== JSON.stringify(b[name])) return false;
    return !offsetsUnder(b[name]).some((offset) => changed.has(offset));
  });
  return new Set(names);
}
