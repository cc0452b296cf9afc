// Runs the tape backwards. Operations are numbered as they are recorded, so descending numbers are a reverse
// topological order. Gradients of late layers are final before those of early layers are computed.
import { kernels } from '../backends/index.ts';
import { aFunction, checkValue } from '../checks/value-checks.ts';
import type { Storage } from '../core/memory/storage.ts';
import { checkBackward } from './anomaly.ts';
import { Leaf } from './leaf.ts';
import { Node } from './node.ts';
import { type Captures, Pass } from './pass.ts';
import type { GradTarget } from './target.ts';

/** Identifies one backward together with the backwards that run inside it, in hooks. */
export type BackwardRun = object;

const endListeners = new Set<(run: BackwardRun) => void>();

/**
 * Calls `done` after every backward of this thread that ended without an error, even if it did not reach the
 * caller's parameters, but not after grad(). For a backward inside another one, in a hook, it is called after the
 * outer one. `run` is the value that runningBackward() had meanwhile; compare it to ignore the backwards of other
 * models. All listeners are called even if one throws; backward throws the first error. Returns a function that
 * unsubscribes. Throws ERR_TENSOR_ARGUMENT if `done` is no function.
 */
export function onBackwardEnd(done: (run: BackwardRun) => void): () => void {
  checkValue('onBackwardEnd: done', done, aFunction);
  const entry = (run: BackwardRun): void => done(run);
  endListeners.add(entry);
  return () => void endListeners.delete(entry);
}

function tellEnd(run: BackwardRun): void {
  const failures: unknown[] = [];
  for (const done of endListeners) {
    try {
      done(run);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** A tensor from which backward starts, and its gradient; null means 1. */
export interface Root {
  readonly target: GradTarget;
  readonly gradient: Storage | null;
}

/** Sets the gradient of a root. */
function seed({ target, gradient }: Root): void {
  if (gradient !== null) {
    target.share(gradient);
    return;
  }
  const ones = target.begin();
  kernels().copy([target.count], ones.dense, 1);
  target.end(ones);
}

/**
 * Continues with the graph that the checkpoint `node` has just recomputed, and returns its nodes. `root` is its result
 * and receives the node's gradient. The contributions of that graph replace those that leaves still expect from `node`.
 */
function enter(pass: Pass, node: Node, root: GradTarget): Node[] {
  const nodes = pass.reach([root]);
  root.share(node.grad!);
  for (const input of node.inputs) if (input instanceof Leaf) input.contributed();
  return nodes;
}

/** Inserts items at an index. Not by splice, which takes them as arguments: V8 allows about 120 000 of these. */
function insert(nodes: Node[], at: number, items: readonly Node[]): void {
  const end = nodes.length;
  nodes.length += items.length;
  nodes.copyWithin(at + items.length, at, end);
  for (const [i, item] of items.entries()) nodes[at + i] = item;
}

function runNodes(pass: Pass, nodes: Node[], roots: ReadonlySet<GradTarget>, retainGraph: boolean): void {
  const entered = new Set<Node>();
  for (let i = 0; i < nodes.length; i++) {
    const node = nodes[i]!;
    node.checkSaved();
    node.runHooks();
    pass.capture(node);
    if (node.recompute !== null) {
      const inner = enter(pass, node, node.recompute());
      for (const each of inner) entered.add(each);
      insert(nodes, i + 1, inner);
    } else {
      node.backward!(node.grad!, null);
      checkBackward(node);
    }
    node.dropGrad();
    if (retainGraph && !entered.has(node)) continue;
    pass.leave(node);
    node.clear();
    // No operation needs the value of an intermediate result any more. The user may have kept it.
    if (!roots.has(node) && !pass.isCaptured(node) && !node.output.isKept) node.output.dispose();
  }
}

/** Number of nested backwards that are running; whether one without captures has ended since the outermost began. */
let depth = 0;
let hasEnded = false;
let running: BackwardRun = {};

/** Returns the backward that calls a hook or a listener: the outermost one if backwards are nested. */
export const runningBackward = (): BackwardRun => running;

/**
 * Runs backward from `roots`. With `captures`, stores the requested gradients there and changes none of leaves.
 */
export function runBackward(
  roots: readonly Root[],
  retainGraph: boolean,
  captures: Captures | null = null,
): void {
  const targets = new Set(roots.map(({ target }) => target));
  const pass = new Pass(captures);
  let isDone = false;
  let nodes: Node[] = [];
  if (depth++ === 0) running = {};
  try {
    nodes = pass.reach(targets);
    for (const root of roots) seed(root);
    runNodes(pass, nodes, targets, retainGraph);
    isDone = true;
  } finally {
    // After an error: drops gradients that were not passed on.
    for (const node of nodes) node.dropGrad();
    for (const root of targets) if (root instanceof Node) root.dropGrad();
    pass.end(isDone);
    depth--;
    if (!isDone && depth === 0) hasEnded = false;
  }
  if (captures === null) hasEnded = true;
  if (depth > 0 || !hasEnded) return;
  hasEnded = false;
  tellEnd(running);
}
