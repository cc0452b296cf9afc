// The history of L-BFGS: data of earlier iterations from which it computes a direction.
import { keep, scope } from '../../core/context.ts';
import type { Tensor } from '../../core/tensor.ts';

/** Returns the inner product of two vectors. Waits for it. */
export const dot = (a: Tensor, b: Tensor): number => scope(() => a.mul(b).sum().item());

/** A step between two points, and the change of the gradient. */
export interface Change {
  readonly step: Tensor;
  readonly gradient: Tensor;
  /** 1 ÷ their inner product. */
  readonly ro: number;
}

export class History {
  readonly changes: Change[] = [];
  /** The scale of the first approximation of the inverse Hessian. */
  scale = 1;

  /** Adds a change and keeps its tensors, unless the curvature along the step is too small. Drops the oldest. */
  add(step: Tensor, gradient: Tensor, most: number): void {
    const curvature = dot(gradient, step);
    if (!(curvature > 1e-10)) return;
    if (this.changes.length === most) this.#drop();
    this.changes.push({ step: keep(step), gradient: keep(gradient), ro: 1 / curvature });
    this.scale = curvature / dot(gradient, gradient);
  }

  /** Returns the product of the approximate inverse Hessian and the negative gradient. */
  directionAt(grad: Tensor): Tensor {
    const weights: number[] = [];
    const direction = grad.neg();
    for (const { step, gradient, ro } of this.changes.toReversed()) {
      const weight = dot(step, direction) * ro;
      weights.unshift(weight);
      scope(() => direction.sub_(gradient.mul(weight)));
    }
    direction.mul_(this.scale);
    for (const [i, { step, gradient, ro }] of this.changes.entries()) {
      const weight = weights[i]! - dot(gradient, direction) * ro;
      scope(() => direction.add_(step.mul(weight)));
    }
    return direction;
  }

  #drop(): void {
    const oldest = this.changes.shift();
    oldest?.step.dispose();
    oldest?.gradient.dispose();
  }

  clear(): void {
    while (this.changes.length > 0) this.#drop();
    this.scale = 1;
  }
}
