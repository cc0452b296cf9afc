// Which members have to go so that all others reach each other: a smallest vertex cover of the graph whose edges are
// the pairs that cannot communicate. Exact, by branching on the member with the most edges, within a budget of
// work; beyond the budget greedy, which may remove more members than needed. A partition is found without branching: a
// matching between its sides is as large as the smaller one.

type Edges = ReadonlyMap<number, ReadonlySet<number>>;

/** Number of edges that one search may look at. */
const budgetOfEdges = 500_000;

/**
 * Returns the fewest of the members 0 … count − 1 whose removal leaves no pair of `cut`, in ascending order. Among
 * several such sets it takes the one that keeps the lowest members.
 */
export function fewestToRemove(count: number, cut: readonly (readonly [number, number])[]): number[] {
  let edges = edgesOf(cut);
  const best = coverOf(edges);
  let left = best.length;
  const removed: number[] = [];
  for (let member = 0; member < count && left > 0; member++) {
    const peers = edges.get(member);
    if (peers === undefined) continue;
    // Keeping this member removes its peers.
    const rest = without(edges, [...peers]);
    if (peers.size <= left && coverOf(rest, left - peers.size).length <= left - peers.size) {
      removed.push(...peers);
      left -= peers.size;
      edges = rest;
    } else {
      removed.push(member);
      left--;
      edges = without(edges, [member]);
    }
  }
  return removed.sort((a, b) => a - b);
}

function edgesOf(cut: readonly (readonly [number, number])[]): Edges {
  const edges = new Map<number, Set<number>>();
  const add = (from: number, to: number) => {
    const peers = edges.get(from) ?? new Set();
    edges.set(from, peers.add(to));
  };
  for (const [a, b] of cut) {
    if (a === b) continue;
    add(a, b);
    add(b, a);
  }
  return edges;
}

/** Returns the edges that no member of `gone` has. */
function without(edges: Edges, gone: readonly number[]): Edges {
  const removed = new Set(gone);
  const rest = new Map<number, Set<number>>();
  for (const [member, peers] of edges) {
    if (removed.has(member)) continue;
    const kept = new Set([...peers].filter((peer) => !removed.has(peer)));
    if (kept.size > 0) rest.set(member, kept);
  }
  return rest;
}

/** Returns a smallest cover, or one with more than `limit` members if there is none with as few. */
function coverOf(edges: Edges, limit = Number.POSITIVE_INFINITY): number[] {
  let budget = budgetOfEdges;
  const search = (left: Edges, most: number): number[] | null => {
    if (left.size === 0) return [];
    if (most <= 0) return null;
    const [busiest, peers] = [...left].reduce((a, b) => (b[1].size > a[1].size ? b : a));
    const degree = peers.size;
    const count = [...left.values()].reduce((sum, each) => sum + each.size, 0) / 2;
    budget -= count;
    if (count > most * degree || budget <= 0 || matching(left) > most) return null;
    const withPeers = degree <= most ? search(without(left, [...peers]), most - degree) : null;
    const found = withPeers === null ? null : [...peers, ...withPeers];
    // A pair without other edges needs one of both, so the second branch cannot be better.
    if (degree === 1 && found !== null) return found;
    const withIt = search(without(left, [busiest]), (found === null ? most : found.length - 1) - 1);
    return withIt === null ? found : [busiest, ...withIt];
  };
  const greedy = greedyCover(edges);
  const most = Math.min(greedy.length - 1, limit);
  return search(edges, most) ?? greedy;
}

/** Returns the number of pairs of a maximal matching: each of them needs a member of its own in a cover. */
function matching(edges: Edges): number {
  const matched = new Set<number>();
  for (const [member, peers] of edges) {
    if (matched.has(member)) continue;
    for (const peer of peers) {
      if (matched.has(peer)) continue;
      matched.add(member).add(peer);
      break;
    }
  }
  return matched.size / 2;
}

function greedyCover(edges: Edges): number[] {
  const cover: number[] = [];
  for (let left = edges; left.size > 0; ) {
    const [busiest] = [...left].reduce((a, b) => (b[1].size >= a[1].size ? b : a));
    cover.push(busiest);
    left = without(left, [busiest]);
  }
  return cover;
}
