// Finds the fewest members to remove so that all others reach each other: a minimum vertex cover of the graph whose
// edges are the pairs that cannot communicate. Exact, by branching on the member with the most edges, within a budget
// of work; beyond the budget greedy, which may remove more members than needed. A partition needs no branching: a
// matching between its sides is as large as the smaller side, which proves that the cover is minimum.

type Edges = Map<number, Set<number>>;

/** Maximum number of edges that one search visits. */
const budgetOfEdges = 500_000;

/**
 * Returns the fewest of the members 0 … count − 1 whose removal leaves no pair of `cut`, in ascending order. Among
 * several such sets it takes the one that keeps the lowest members.
 */
export function fewestToRemove(count: number, cut: readonly (readonly [number, number])[]): number[] {
  const edges = edgesOf(cut);
  let left = coverOf(edges, Number.POSITIVE_INFINITY).length;
  const removed: number[] = [];
  const drop = (member: number) => {
    remove(edges, member);
    removed.push(member);
    left--;
  };
  for (let member = 0; member < count && edges.size > 0; member++) {
    const peers = [...(edges.get(member) ?? [])];
    if (peers.length === 0) continue;
    // Keeping this member removes its peers.
    if (peers.length <= left && fits(without(edges, peers), left - peers.length)) peers.forEach(drop);
    else drop(member);
  }
  return removed.sort((a, b) => a - b);
}

const fits = (edges: Edges, limit: number) => coverOf(edges, limit).length <= limit;

function edgesOf(cut: readonly (readonly [number, number])[]): Edges {
  const edges: Edges = new Map();
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

/** Removes a member with its edges. */
function remove(edges: Edges, member: number): void {
  for (const peer of edges.get(member) ?? []) {
    const peers = edges.get(peer)!;
    peers.delete(member);
    if (peers.size === 0) edges.delete(peer);
  }
  edges.delete(member);
}

function without(edges: Edges, gone: readonly number[]): Edges {
  const rest: Edges = new Map([...edges].map(([member, peers]) => [member, new Set(peers)]));
  for (const member of gone) remove(rest, member);
  return rest;
}

function busiestOf(edges: Edges, isLastOfEqual: boolean): number {
  let [busiest, most] = [-1, 0];
  for (const [member, { size }] of edges) {
    if (size > most || (isLastOfEqual && size === most)) [busiest, most] = [member, size];
  }
  return busiest;
}

/** Returns a smallest cover, or one with more than `limit` members if there is none with as few. */
function coverOf(edges: Edges, limit: number): number[] {
  let budget = budgetOfEdges;
  const search = (left: Edges, most: number): number[] | null => {
    if (left.size === 0) return [];
    if (most <= 0) return null;
    const busiest = busiestOf(left, false);
    const peers = [...left.get(busiest)!];
    const degree = peers.length;
    const count = [...left.values()].reduce((sum, each) => sum + each.size, 0) / 2;
    budget -= count;
    if (count > most * degree || budget <= 0 || matching(left) > most) return null;
    const withPeers = degree <= most ? search(without(left, peers), most - degree) : null;
    const found = withPeers === null ? null : [...peers, ...withPeers];
    // For a pair without other edges, removing either member is equally good, so the second branch is skipped.
    if (degree === 1 && found !== null) return found;
    const withIt = search(without(left, [busiest]), (found === null ? most : found.length - 1) - 1);
    return withIt === null ? found : [busiest, ...withIt];
  };
  const greedy = greedyCover(edges);
  return search(edges, Math.min(greedy.length - 1, limit)) ?? greedy;
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
  const left = without(edges, []);
  const cover: number[] = [];
  while (left.size > 0) {
    const busiest = busiestOf(left, true);
    cover.push(busiest);
    remove(left, busiest);
  }
  return cover;
}
