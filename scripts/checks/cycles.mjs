// Finds circular imports, type imports included. Files that import each other, directly or through others, can only be
// understood all at once.

/**
 * Returns circles of a graph, given as a map from each file to the files that it imports. A circle is a list of files
 * in which each file imports the next, and the last imports the first. Goes through the files in the order of the map,
 * and returns the shortest circle through each file that is in no circle found before. So not all circles are returned.
 */
export function circlesIn(imports) {
  const circles = [];
  const done = new Set();
  for (const start of imports.keys()) {
    if (done.has(start)) continue;
    const circle = shortestCircle(imports, start);
    if (circle === null) continue;
    circles.push(circle);
    for (const file of circle) done.add(file);
  }
  return circles;
}

/** Returns the shortest circle through a file, found by breadth-first search; null if there is none. */
function shortestCircle(imports, start) {
  const before = new Map();
  let frontier = [start];
  while (frontier.length > 0) {
    const next = [];
    for (const file of frontier) {
      for (const target of imports.get(file) ?? []) {
        if (target === start) return wayTo(file, before);
        if (before.has(target)) continue;
        before.set(target, file);
        next.push(target);
      }
    }
    frontier = next;
  }
  return null;
}

function wayTo(file, before) {
  const way = [];
  for (let at = file; at !== undefined; at = before.get(at)) way.unshift(at);
  return way;
}
