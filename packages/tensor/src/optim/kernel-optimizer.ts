// Optimisers whose step is a kernel: one call for all parameters of a group.
import { kernels } from '../backends/index.ts';
import { badOptimizerParam } from '../errors.ts';
import type { OptimizerRule, OptimizerTensor } from '../kernels.ts';
import type { Storage } from '../storage.ts';
import type { Tensor } from '../tensor.ts';
import { gradOf, type LrOptions, Optimizer, type ParamGroup } from './optimizer.ts';

export abstract class KernelOptimizer<O extends LrOptions> extends Optimizer<O> {
  /** What the kernel does under these options. */
  protected abstract rule(options: O): OptimizerRule;

  /** Names of the rule's states, in its order; null for those that these options need none of. */
  protected abstract states(options: O): readonly (string | null)[];

  protected override remembers(options: O): readonly string[] {
    return this.states(options).filter((name) => name !== null);
  }

  step(): void {
    for (const group of this.groups) this.#step(group);
  }

  #step(group: ParamGroup<O>): void {
    const names = this.states(group);
    const tensors: OptimizerTensor[] = [];
    for (const param of group.params) {
      const grad = gradOf(param);
      if (!grad) continue;
      tensors.push(this.#row(param, grad, names));
      param.storage.version++;
    }
    if (tensors.length > 0) kernels().optimize(this.rule(group), tensors);
  }

  #row(param: Tensor, grad: Storage, names: readonly (string | null)[]): OptimizerTensor {
    const { dtype, count, strided } = param;
    const isFitting = (dtype === 'float32' || dtype === 'float64') && param.isContiguous;
    if (!isFitting) throw badOptimizerParam(param.shape, dtype, param.isContiguous);
    const state = this.stateOf(param);
    const states = names.map((name) => name && state.tensor(name, param).strided);
    // Only steps that something remembers count: the first one starts it.
    if (states.some((tensor) => tensor)) state.steps++;
    return { param: strided, grad: grad.dense, states: states as never, count, steps: state.steps || 1 };
  }
}
