// Optimiser steps element by element, in the order of operations of torch.optim.
import type { AdamRule, LionRule, OptimizerRule, OptimizerTensor, RmspropRule, SgdRule } from '../kernels.ts';
import type { Input, Strided } from '../operands.ts';

type Floats = Float32Array | Float64Array;

/** Returns the value of element i after the step, given its gradient. Changes its states. */
type Step = (value: number, grad: number, i: number) => number;

const floatsOf = ({ memory, offset }: Strided, count: number): Floats =>
  (memory.host as Floats).subarray(offset, offset + count);

/** Adds the decay of a value to its gradient. A rate of 0 adds nothing, where 0 times infinity would add NaN. */
const decayed = (grad: number, rate: number, value: number): number =>
  rate === 0 ? grad : grad + rate * value;

function sgd(rule: SgdRule, [velocity]: readonly (Floats | null)[], steps: number): Step {
  const { lr, weightDecay, momentum, dampening, nesterov } = rule;
  return (value, grad, i) => {
    let step = decayed(grad, weightDecay, value);
    if (velocity) {
      velocity[i] = steps === 1 ? step : momentum * velocity[i]! + (1 - dampening) * step;
      step = nesterov ? step + momentum * velocity[i]! : velocity[i]!;
    }
    return value - lr * step;
  };
}

/** Moves `from` towards `to` by the share 1 - `kept`, as torch.lerp does: a share of 1 gives `to`. */
const moved = (from: number, to: number, kept: number): number =>
  1 - kept < 0.5 ? from + (1 - kept) * (to - from) : to - kept * (to - from);

function adam(rule: AdamRule, [mean, square, most]: readonly (Floats | null)[], steps: number): Step {
  const { lr, weightDecay, epsilon, isDecoupled } = rule;
  const [beta, squareBeta] = rule.betas;
  const size = lr / (1 - beta ** steps);
  const correction = Math.sqrt(1 - squareBeta ** steps);
  return (before, slope, i) => {
    const value = isDecoupled ? before * (1 - lr * weightDecay) : before;
    const grad = isDecoupled ? slope : decayed(slope, weightDecay, value);
    mean![i] = moved(mean![i]!, grad, beta);
    square![i] = squareBeta * square![i]! + (1 - squareBeta) * grad * grad;
    if (most) most[i] = Math.max(most[i]!, square![i]!);
    const spread = Math.sqrt((most ?? square)![i]!) / correction + epsilon;
    return value - (size * mean![i]!) / spread;
  };
}

function rmsprop(rule: RmspropRule, [square, velocity, mean]: readonly (Floats | null)[]): Step {
  const { lr, weightDecay, alpha, epsilon, momentum } = rule;
  return (value, slope, i) => {
    const grad = decayed(slope, weightDecay, value);
    square![i] = alpha * square![i]! + (1 - alpha) * grad * grad;
    let spread = square![i]!;
    if (mean) {
      mean[i] = moved(mean[i]!, grad, alpha);
      spread -= mean[i]! * mean[i]!;
    }
    let step = grad / (Math.sqrt(spread) + epsilon);
    if (velocity) {
      velocity[i] = momentum * velocity[i]! + step;
      step = velocity[i]!;
    }
    return value - lr * step;
  };
}

function lion(rule: LionRule, [mean]: readonly (Floats | null)[]): Step {
  const { lr, weightDecay } = rule;
  const [beta, stateBeta] = rule.betas;
  return (value, grad, i) => {
    const blend = beta * mean![i]! + (1 - beta) * grad;
    mean![i] = stateBeta * mean![i]! + (1 - stateBeta) * grad;
    return value * (1 - lr * weightDecay) - lr * Math.sign(blend);
  };
}

function stepOf(rule: OptimizerRule, states: readonly (Floats | null)[], steps: number): Step {
  switch (rule.kind) {
    case 'sgd':
      return sgd(rule, states, steps);
    case 'adam':
      return adam(rule, states, steps);
    case 'rmsprop':
      return rmsprop(rule, states);
    case 'lion':
      return lion(rule, states);
  }
}

export function optimize(rule: OptimizerRule, tensors: readonly OptimizerTensor[]): void {
  for (const { param, grad, states, count, steps } of tensors) {
    const values = floatsOf(param, count);
    const grads = floatsOf(grad, count);
    const step = stepOf(
      rule,
      states.map((state) => state && floatsOf(state, count)),
      steps,
    );
    for (let i = 0; i < count; i++) values[i] = step(values[i]!, rule.maximize ? -grads[i]! : grads[i]!, i);
  }
}

export function totalNorm(out: Strided, tensors: readonly Strided[], counts: readonly number[]): void {
  let sum = 0;
  for (const [i, tensor] of tensors.entries()) for (const x of floatsOf(tensor, counts[i]!)) sum += x * x;
  floatsOf(out, 1)[0] = Math.sqrt(sum);
}

export function scale(
  tensors: readonly Strided[],
  counts: readonly number[],
  factor: Input,
  found: Strided | null,
): void {
  const by = typeof factor === 'number' ? factor : floatsOf(factor, 1)[0]!;
  let areFinite = true;
  for (const [t, tensor] of tensors.entries()) {
    const values = floatsOf(tensor, counts[t]!);
    for (let i = 0; i < values.length; i++) {
      areFinite &&= Number.isFinite(values[i]);
      values[i] = values[i]! * by;
    }
  }
  if (found && !areFinite) floatsOf(found, 1)[0] = 1;
}
