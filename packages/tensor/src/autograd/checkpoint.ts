// Trades computation for memory: the intermediate results of a function are dropped after forward and computed again in
// backward. The graph of the second run replaces the checkpoint in the running backward, so parameters in it get their
// contributions, and become ready, as without a checkpoint.

import { aFunction, aTensor, checkValue } from '../checks/value-checks.ts';
import { enableGrad, isGradEnabled, keepingAutocast, scope } from '../core/context.ts';
import { sameShape } from '../core/shape.ts';
import type { Tensor } from '../core/tensor.ts';
import { checkpointChanged } from '../errors.ts';
import { defaultGenerator } from '../random/random.ts';
import { revived } from './graph.ts';
import { latestSeq, Node, record } from './node.ts';
import type { GradTarget } from './target.ts';

/** Returns the targets outside the graph of `root` that it contributes to: leaves, and operations before `seq`. */
function borderOf(root: GradTarget, seq: number): GradTarget[] {
  const seen = new Set<GradTarget>([root]);
  const border: GradTarget[] = [];
  for (const target of seen) {
    if (target instanceof Node && target.seq > seq)
      for (const input of target.inputs) input && seen.add(input);
    else border.push(target);
  }
  return border;
}

/** Runs `fn` with the default generator in `state`, and then sets the generator back. */
function withRandomState<T>(state: ReturnType<ReturnType<typeof defaultGenerator>['state']>, fn: () => T): T {
  const generator = defaultGenerator();
  const now = generator.state();
  generator.setState(state);
  try {
    return fn();
  } finally {
    generator.setState(now);
  }
}

/**
 * Returns fn(...inputs) without keeping its intermediate results: backward calls `fn` again. `fn` returns one tensor,
 * and must return the same values in the second call. It may use parameters, and the default generator, whose state is
 * restored for the second call; other generators are not restored.
 */
export function checkpoint<Inputs extends readonly Tensor[]>(
  fn: (...inputs: Inputs) => Tensor,
  ...inputs: Inputs
): Tensor {
  checkValue('checkpoint', fn, aFunction);
  if (!isGradEnabled()) return fn(...inputs);
  const state = defaultGenerator().state();
  const seq = latestSeq();
  const asNow = keepingAutocast();
  return scope(() => {
    const result = fn(...inputs);
    checkValue('checkpoint: the result of the function', result, aTensor);
    if (result.target === null) return result;
    const out = result.detach();
    const saved = inputs.map(({ storage, shape, strided, target }) => ({ storage, shape, strided, target }));
    const storages = saved.map(({ storage }) => storage);
    record('checkpoint', out, borderOf(result.target, seq), storages, () => {});
    (out.target as Node).recompute = () => {
      const again = withRandomState(state, () =>
        scope(() =>
          asNow(() =>
            enableGrad(() => fn(...(saved.map((one) => revived(one.storage, one)) as unknown as Inputs))),
          ),
        ),
      );
      if (again.target === null || !sameShape(again.shape, out.shape)) throw checkpointChanged();
      return again.target;
    };
    return out;
  });
}
