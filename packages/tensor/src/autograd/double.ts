// Backward with tensors instead of memory: its computations are recorded, so that gradients can be differentiated
// again. Nothing is freed, no leaf changes, and the graph can be used by another backward.
import { enableGrad, withoutAutocast } from '../core/context.ts';
import { ones } from '../core/creation.ts';
import type { Tensor } from '../core/tensor.ts';
import { graphUsedTwice, hooksInGraph, notTwiceDifferentiable } from '../errors.ts';
import { differentiableMap } from '../ops/differentiable-map.ts';
import { GradGraph, type GraphTools } from './graph.ts';
import { Node } from './node.ts';
import type { GradTarget } from './target.ts';

/** A tensor from which backward starts, and its gradient; null means 1. */
export interface GraphRoot {
  readonly output: Tensor;
  readonly gradient: Tensor | null;
}

/** Returns the operations between `roots` and `wanted`, latest first. */
function nodesBetween(roots: readonly GradTarget[], wanted: ReadonlySet<GradTarget>): Node[] {
  const found = new Set<Node>();
  const add = (target: GradTarget | null): void => void (target instanceof Node && found.add(target));
  for (const root of roots) add(root);
  // Iterating over a set includes the elements that are added during the loop.
  for (const node of found) {
    if (node.backward === null) throw graphUsedTwice(node.name);
    for (const input of node.inputs) add(input);
  }
  const needed = new Set<GradTarget>(wanted);
  const ordered = [...found].sort((a, b) => a.seq - b.seq);
  const nodes = ordered.filter((node) => {
    const leads = node.inputs.some((input) => input !== null && needed.has(input));
    if (leads) needed.add(node);
    return leads;
  });
  return nodes.reverse();
}

/** Returns the gradients of `wanted` as tensors with a graph; those that the roots do not depend on are missing. */
export function gradientsWithGraph(
  roots: readonly GraphRoot[],
  wanted: ReadonlySet<GradTarget>,
): Map<GradTarget, Tensor> {
  const gradients = new Map<GradTarget, Tensor>();
  const send = (target: GradTarget, gradient: Tensor): void => {
    const sum = gradients.get(target);
    gradients.set(target, sum === undefined ? gradient : sum.add(gradient));
  };
  const tools: GraphTools = { map: differentiableMap, differentiate, send };
  return withoutAutocast(() =>
    enableGrad(() => {
      const targets = roots.map(({ output }) => output.target!);
      for (const { output, gradient } of roots)
        send(output.target!, gradient ?? ones(output.shape, { dtype: output.dtype, device: output.device }));
      const nodes = nodesBetween(targets, wanted);
      for (const target of [...nodes, ...wanted]) if (target.hasHooks) throw hooksInGraph();
      for (const node of nodes) {
        const gradient = gradients.get(node);
        if (gradient === undefined) continue;
        node.checkSaved();
        if (!node.isTwiceDifferentiable || node.recompute !== null) throw notTwiceDifferentiable(node.name);
        node.backward!(gradient.storage, new GradGraph(node, gradient, tools));
      }
      return gradients;
    }),
  );
}

function differentiate(output: Tensor, gradient: Tensor, inputs: readonly Tensor[]): (Tensor | null)[] {
  const wanted = new Set(inputs.map(({ target }) => target!));
  const gradients = output.target === null ? null : gradientsWithGraph([{ output, gradient }], wanted);
  return inputs.map(({ target }) => gradients?.get(target!) ?? null);
}
