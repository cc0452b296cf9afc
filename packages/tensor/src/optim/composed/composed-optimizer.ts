// Base of the optimisers whose step is made of tensor operations, one parameter after the other. They need several
// kernel calls for each parameter, where those of kernel-optimizer.ts need one for all.
import { noGrad, scope } from '../../core/context.ts';
import type { Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { refuseWhileCapturing } from '../../device/capture.ts';
import { badOptimizerParam } from '../../errors.ts';
import { gradOf, type LrOptions, lossOf, Optimizer } from '../optimizer.ts';

/** The operands of a step for one parameter. */
export interface ParamStep {
  /** The values, without a graph; writing to it changes the parameter. */
  readonly param: Tensor;
  /** The gradient; its negative if the group maximises. */
  readonly grad: Tensor;
  /** The number of this step; 1 in the first. */
  readonly steps: number;
  /** Returns a state tensor, which is zero in the first step. */
  readonly state: (name: string) => Tensor;
}

export abstract class ComposedOptimizer<O extends LrOptions & { maximize?: boolean }> extends Optimizer<O> {
  /** Makes the step of one parameter. Runs in a scope, and records nothing. */
  protected abstract update(step: ParamStep, options: O): void;

  step(): void;
  step(closure: () => Tensor): Tensor;
  // With a default, so that step.length is 0, which says that no argument is needed.
  step(closure: (() => Tensor) | null = null): Tensor | undefined {
    this.checkNumbers();
    const loss = lossOf(this.constructor.name, closure);
    refuseWhileCapturing(`the step of ${this.constructor.name}`);
    for (const { shape, dtype, isContiguous } of this.params.filter(gradOf)) {
      const isFitting = (dtype === 'float32' || dtype === 'float64') && isContiguous;
      if (!isFitting) throw badOptimizerParam(shape, dtype, isContiguous);
    }
    noGrad(() => {
      for (const group of this.groups)
        for (const param of group.params) if (gradOf(param)) scope(() => this.#update(param, group));
    });
    return loss;
  }

  #update(param: Tensor, options: O): void {
    const own = this.stateOf(param);
    own.steps++;
    const grad = param.grad!.detach();
    this.update(
      {
        param: param.detach(),
        grad: options.maximize ? grad.neg() : grad,
        steps: own.steps,
        state: (name) => own.tensor(name, param, this.stateShape(name, param)),
      },
      options,
    );
  }
}

/** Returns `step` with an L2 penalty in its gradient. */
export const withPenalty = (step: ParamStep, weightDecay: number): ParamStep =>
  weightDecay === 0 ? step : { ...step, grad: step.grad.add(step.param.mul(weightDecay)) };

/** Multiplies the parameter by 1 − lr × weightDecay. */
export function shrink_({ param }: ParamStep, lr: number, weightDecay: number): void {
  if (weightDecay !== 0) param.mul_(1 - lr * weightDecay);
}

/** Moves `mean` towards `value`, by the share `weight` of the distance. */
export function lerp_(mean: Tensor, value: Tensor, weight: number): void {
  if (weight < 0.5) mean.add_(value.sub(mean).mul(weight));
  else mean.copy_(value.sub(value.sub(mean).mul(1 - weight)));
}

/** Advances a running mean of squares, of which each step keeps the share `kept`. */
export function meanSquare_(mean: Tensor, value: Tensor, kept: number): void {
  mean.mul_(kept).add_(value.square().mul(1 - kept));
}

/** The shape of a state tensor that is a number; see Optimizer.stateShape. */
export const shapeUnless = (isNumber: boolean, param: Tensor): Shape | null =>
  isNumber ? null : param.shape;
