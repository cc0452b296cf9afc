// Runs the tape backwards. Operations are numbered as they are recorded, so descending numbers are a reverse
// topological order; the gradients of late layers are final before those of early layers are computed.
import { kernels } from '../backends/index.ts';
import { graphUsedTwice } from '../errors.ts';
import type { Storage } from '../storage.ts';
import { Leaf } from './leaf.ts';
import { Node } from './node.ts';
import type { GradTarget } from './target.ts';

let lastVisit = 0;
const endListeners = new Set<() => void>();

/**
 * Calls `done` after every backward of this process that ended without an error, also those that did not reach the
 * caller's parameters. Returns a function that unsubscribes.
 */
export function onBackwardEnd(done: () => void): () => void {
  const entry = (): void => done();
  endListeners.add(entry);
  return () => void endListeners.delete(entry);
}

/** All nodes that `root` depends on, latest first. Tells each leaf how many contributions it will get. */
function collect(root: Node): Node[] {
  const visit = ++lastVisit;
  const nodes = [root];
  root.visit = visit;
  for (let i = 0; i < nodes.length; i++) {
    const node = nodes[i]!;
    if (node.backward === null) throw graphUsedTwice(node.name);
    for (const input of node.inputs) {
      if (input instanceof Leaf) {
        input.pending = input.visit === visit ? input.pending + 1 : 1;
        input.visit = visit;
      } else if (input instanceof Node && input.visit !== visit) {
        input.visit = visit;
        nodes.push(input);
      }
    }
  }
  return nodes.sort((a, b) => b.seq - a.seq);
}

function seed(root: GradTarget, gradient: Storage | null): void {
  if (gradient !== null) {
    root.share(gradient);
    return;
  }
  const ones = root.begin();
  kernels().copy([root.count], ones.dense, 1);
  root.end(ones);
}

/** `gradient`: that of the root, null for 1. */
export function runBackward(root: Node | Leaf, gradient: Storage | null, retainGraph: boolean): void {
  if (root instanceof Leaf) {
    root.pending = 1;
    seed(root, gradient);
  } else {
    const nodes = collect(root);
    seed(root, gradient);
    try {
      for (const node of nodes) {
        node.checkSaved();
        node.backward!(node.grad!);
        node.dropGrad();
        if (retainGraph) continue;
        node.clear();
        // The value of an intermediate result is of no use any more, except to a user who said so.
        if (node !== root && !node.output.isKept) node.output.dispose();
      }
    } finally {
      // After an error: gradients that were on their way.
      for (const node of nodes) node.dropGrad();
    }
  }
  for (const done of endListeners) done();
}
