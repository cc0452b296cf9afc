// The graph of one backward: its nodes in order, and the number of contributions that each leaf waits for.

import type { Storage } from '../core/memory/storage.ts';
import { graphUsedTwice } from '../errors.ts';
import { Leaf } from './leaf.ts';
import { Node } from './node.ts';
import type { GradTarget } from './target.ts';

/** The targets whose gradients were requested, and the gradients once they are known, each with one reference. */
export type Captures = Map<GradTarget, Storage | null>;

let lastVisit = 0;

export class Pass {
  readonly #visit = ++lastVisit;
  readonly #captures: Captures | null;
  readonly #leaves: Leaf[] = [];
  /**
   * With captures: targets that lead to a requested one, and nodes that do not. The latter receive gradients
   * but do not pass them on.
   */
  readonly #needed = new Set<GradTarget>();
  readonly #others = new Set<Node>();

  constructor(captures: Captures | null) {
    this.#captures = captures;
    for (const target of captures?.keys() ?? []) this.#needed.add(target);
  }

  isCaptured(node: Node): boolean {
    return this.#captures?.has(node) === true;
  }

  /** Stores the gradient of a node if it was requested. */
  capture(node: Node): void {
    if (this.isCaptured(node)) this.#captures!.set(node, node.grad!.retain());
  }

  /**
   * Releases the references of a node that has run to inputs that will not run. Inputs that run need no release: they
   * are cleared after their own run.
   */
  leave(node: Node): void {
    if (this.#others.size === 0) return;
    for (const input of node.inputs) if (this.#others.has(input as Node)) (input as Node).unreferenced();
  }

  /** Returns all nodes to run that `roots` depend on and that are not in this pass yet, latest first. */
  reach(roots: Iterable<GradTarget>): Node[] {
    const found: Node[] = [];
    const visit = (target: GradTarget | null): void => {
      if (!(target instanceof Node) || target.visit === this.#visit) return;
      target.visit = this.#visit;
      found.push(target);
    };
    for (const root of roots) {
      visit(root);
      if (root instanceof Leaf) this.#claim(root);
    }
    for (let i = 0; i < found.length; i++) {
      const node = found[i]!;
      if (node.backward === null) throw graphUsedTwice(node.name);
      for (const input of node.inputs) visit(input);
    }
    const nodes = this.#onlyNeeded(found.sort((a, b) => b.seq - a.seq));
    for (const { inputs } of nodes) for (const input of inputs) if (input instanceof Leaf) this.#claim(input);
    return nodes;
  }

  #onlyNeeded(nodes: Node[]): Node[] {
    if (this.#captures === null) return nodes;
    for (const node of nodes.toReversed()) {
      if (node.inputs.some((input) => input !== null && this.#needed.has(input))) this.#needed.add(node);
      else if (!this.#needed.has(node)) this.#others.add(node);
    }
    return nodes.filter((node) => this.#needed.has(node));
  }

  #claim(leaf: Leaf): void {
    leaf.pending++;
    if (leaf.visit === this.#visit) return;
    leaf.visit = this.#visit;
    this.#leaves.push(leaf);
    if (this.#captures !== null || leaf.hasHooks) leaf.setAside(this.#captures !== null);
  }

  /** Ends the pass: hands over captured gradients, and resets everything that an error left behind. */
  end(isDone: boolean): void {
    for (const node of this.#others) node.dropGrad();
    for (const leaf of this.#leaves) {
      if (!isDone) leaf.pending = 0;
      if (isDone && leaf.isFilled && this.#captures?.has(leaf)) this.#captures.set(leaf, leaf.grad!.retain());
      leaf.restore();
    }
  }
}
