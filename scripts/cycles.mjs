// Finds circles of imports, types included: files that import each other, directly or through others, can only be read
// all at once.

/**
 * Returns the circles of a graph, given as a map from each file to the files that it imports. Each circle is a list of
 * files in which every one imports the next, and the last imports the first. Of the files that import each other, one
 * circle is returned, the shortest through the first file.
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

/** Returns the shortest way from a file back to itself, by breadth-first search; null if there is none. */
function shortestCircle(imports, start) {
  const before = new Map();
  let edge = [start];
  while (edge.length > 0) {
    const next = [];
    for (const file of edge) {
      for (const target of imports.get(file) ?? []) {
        if (target === start) return wayTo(file, before);
        if (before.has(target)) continue;
        before.set(target, file);
        next.push(target);
      }
    }
    edge = next;
  }
  return null;
}

function wayTo(file, before) {
  const way = [];
  for (let at = file; at !== undefined; at = before.get(at)) way.unshift(at);
  return way;
}
