// What every optimiser does: it holds parameters, reads their gradients, changes their values in place.
import { badOption } from '../errors.ts';
import type { Tensor } from '../tensor.ts';
import type { ZeroGradOptions } from '../tensor-grad.ts';

export interface OptimizerState {
  /** Settings such as the learning rate; plain JSON. */
  readonly options: Readonly<Record<string, number | boolean>>;
  /** Memory of the past, by name; the tensors themselves, ready for saveSafetensors. */
  readonly tensors: Readonly<Record<string, Tensor>>;
}

export abstract class Optimizer {
  readonly params: readonly Tensor[];
  /** Learning rate; may be changed between steps. */
  lr: number;

  constructor(params: Iterable<Tensor>, lr: number) {
    this.params = [...params];
    if (this.params.length === 0) throw badOption('optimizer: params', 'at least one parameter', 'none');
    this.lr = checkedOption('lr', lr);
  }

  /** Changes every parameter that has a gradient. */
  abstract step(): void;

  abstract stateDict(): OptimizerState;

  /** Copies settings and memory from `state`, which stays the caller's. Everything is checked first. */
  abstract loadStateDict(state: OptimizerState): void;

  /** Drops all gradients, or fills them with zero; see Tensor.zeroGrad. */
  zeroGrad(options?: ZeroGradOptions): void {
    for (const param of this.params) if (param.requiresGrad) param.zeroGrad(options);
  }
}

/** A number ≥ 0. */
export function checkedOption(name: string, value: number): number {
  if (!(value >= 0)) throw badOption(`optimizer: ${name}`, 'a number ≥ 0', value);
  return value;
}
