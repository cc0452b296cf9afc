// Passes the gradients of several tensors to one function together, before backward continues.
//
// Each tensor is replaced by another one over the same memory, whose gradient is stored. A node before all of them runs
// after the last of these: it was recorded before them, and after the operations that made the tensors.

import { kernels } from '../backends/index.ts';
import { enableGrad, keep, noGrad, scope } from '../core/context.ts';
import { zeros } from '../core/creation.ts';
import { allocate, type Storage } from '../core/memory/storage.ts';
import { created, empty, type Tensor } from '../core/tensor.ts';
import { type Input, sendGradients } from './custom.ts';
import { graphOf } from './graph.ts';
import { isRecording, record } from './node.ts';
import type { GradTarget } from './target.ts';

/** A gradient for each tensor of a list; null where there is none. */
export type Gradients = readonly (Tensor | null)[];

/** Returns whether operations on one of these tensors are recorded. */
export const hasRecorded = (tensors: Gradients): boolean =>
  tensors.some((tensor) => tensor !== null && isRecording(tensor));

/** Sends a gradient to the gathering node that says nothing, only so that the node runs. */
function wake(node: GradTarget, graph: object | null): void {
  if (graph) {
    graphOf(graph).send(node, zeros([]));
    return;
  }
  const nothing = allocate('float32', 1, 'cpu');
  kernels().copy([1], nothing.dense, 0);
  node.share(nothing);
  nothing.release();
}

/**
 * Returns replacements for `tensors`, null for null. In each backward, `react` receives their gradients together: null
 * for tensors that no gradient reached. Its results continue to the operations that made the tensors; null means zeros.
 * Tensors that are not recorded are returned unchanged, and have the gradient null. The arguments of `react` and the
 * tensors that it makes are disposed of when it has ended, except the tensors that `held` returns then, which belong to
 * the scope that is open around the backward.
 */
export function gathered(
  name: string,
  tensors: Gradients,
  react: (gradients: Gradients) => Gradients,
  held: () => unknown = () => null,
): (Tensor | null)[] {
  const known = tensors.map((tensor): Input | null => {
    if (tensor === null || !isRecording(tensor)) return null;
    const { dtype, shape, device, target } = tensor;
    return { dtype, shape, device, target };
  });
  const found: (Storage | Tensor | null)[] = known.map(() => null);
  const gate = keep(empty('float32', []));
  const targets = known.map((input) => input?.target ?? null);
  record(name, gate, targets, [], (_, graph) => {
    const arrived = [...found];
    found.fill(null);
    if (graph) {
      const passed = enableGrad(() => react(arrived as (Tensor | null)[]));
      for (const [i, input] of known.entries()) {
        if (input === null) continue;
        const { dtype, shape, device, target } = input;
        graphOf(graph).send(target, passed[i] ?? zeros(shape, { dtype, device }));
      }
      return;
    }
    scope(() => {
      const given = arrived.map((grad, i) => grad && created(grad as Storage, known[i]!.shape));
      const passed = noGrad(() => react(given));
      sendGradients(name, known, passed);
      return held();
    });
  });
  const node = gate.target!;
  const replaced = tensors.map((tensor, i) => {
    if (tensor === null || known[i] === null) return tensor;
    return record(name, tensor.detach(), [node], [], (grad, graph) => {
      const before = found[i];
      // Left by a backward that failed before the gathering node ran.
      if (before && 'release' in before && !graph) (before as Storage).release();
      found[i] = graph ? graphOf(graph).grad : grad.retain();
      wake(node, graph);
    });
  });
  gate.dispose();
  return replaced;
}
