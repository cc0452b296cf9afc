// Base of the optimisers whose step is one kernel call for all parameters of a group.
import { kernels } from '../backends/index.ts';
import type { OptimizerRule, OptimizerTensor } from '../backends/kernels.ts';
import { optimizerNumbers } from '../backends/native/optimizer.ts';
import type { Storage } from '../core/memory/storage.ts';
import type { Tensor } from '../core/tensor.ts';
import { type Capture, capturing } from '../device/capture.ts';
import { badOptimizerParam } from '../errors.ts';
import { gradOf, type LrOptions, lossOf, Optimizer, type ParamGroup } from './optimizer.ts';
import type { ParamState } from './param-state.ts';

interface StepCount {
  readonly state: ParamState;
  /** Whether `state.steps` is counted: only if the parameter has state tensors. */
  readonly isCounted: boolean;
}

/** Counts a step, if steps are counted. Returns the number of steps so far; 1 if they are not counted. */
function advance({ state, isCounted }: StepCount): number {
  if (isCounted) state.steps++;
  return state.steps || 1;
}

export abstract class KernelOptimizer<O extends LrOptions> extends Optimizer<O> {
  /** Returns the rule that the kernel applies with these options. */
  protected abstract rule(options: O): OptimizerRule;

  /** Returns the names of the rule's states, in the rule's order; null for states that these options do not need. */
  protected abstract states(options: O): readonly (string | null)[];

  protected override remembers(options: O): readonly string[] {
    return this.states(options).filter((name) => name !== null);
  }

  step(): void;
  step(closure: () => Tensor): Tensor;
  // With a default, so that step.length is 0, which says that no argument is needed.
  step(closure: (() => Tensor) | null = null): Tensor | undefined {
    this.checkNumbers();
    const loss = lossOf(this.constructor.name, closure);
    for (const group of this.groups) this.#step(group);
    return loss;
  }

  #step(group: ParamGroup<O>): void {
    const names = this.states(group);
    const tensors: OptimizerTensor[] = [];
    const counts: StepCount[] = [];
    for (const param of group.params) {
      const grad = gradOf(param);
      if (!grad) continue;
      const count = this.#countOf(param, names);
      const row = this.#row(param, grad, names, count);
      if (param.count === 0) {
        // Memory without elements may have no address, such as that of an empty bucket, and the kernel refuses that.
        advance(count);
        continue;
      }
      tensors.push(row);
      counts.push(count);
      param.storage.version++;
    }
    if (tensors.length === 0) return;
    const capture = capturing();
    if (capture !== null) this.#capture(capture, group, counts);
    else for (const count of counts) advance(count);
    kernels().optimize(this.rule(group), tensors);
  }

  /** Makes every run of a captured step count a step and read the current numeric options of the group. */
  #capture(capture: Capture, group: ParamGroup<O>, counts: readonly StepCount[]): void {
    const steps = new Float64Array(counts.length);
    capture.optimizes(() => {
      for (let i = 0; i < counts.length; i++) steps[i] = advance(counts[i]!);
      return { steps, ...optimizerNumbers(this.rule(group)) };
    });
  }

  /** Returns the step count of a parameter. */
  #countOf(param: Tensor, names: readonly (string | null)[]): StepCount {
    return { state: this.stateOf(param), isCounted: names.some((name) => name !== null) };
  }

  /** Returns the kernel's row for one parameter. Its step number is that of the step that now begins. */
  #row(param: Tensor, grad: Storage, names: readonly (string | null)[], step: StepCount): OptimizerTensor {
    const { dtype, count, strided } = param;
    const isFitting = (dtype === 'float32' || dtype === 'float64') && param.isContiguous;
    if (!isFitting) throw badOptimizerParam(param.shape, dtype, param.isContiguous);
    const states = names.map((name) => name && step.state.tensor(name, param).strided);
    const steps = step.isCounted ? step.state.steps + 1 : 1;
    return { param: strided, grad: grad.dense, states: states as never, count, steps };
  }
}
