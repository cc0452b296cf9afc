// Stochastic gradient descent, with the numbers of torch.optim.SGD.
import { kernels } from '../backends/index.ts';
import { badOption, badStateDict } from '../errors.ts';
import type { Strided } from '../kernels.ts';
import { sameShape } from '../shape.ts';
import { allocate } from '../storage.ts';
import { Tensor } from '../tensor.ts';
import { checkedOption, Optimizer, type OptimizerState } from './optimizer.ts';

export interface SGDOptions {
  readonly lr: number;
  /** Default 0. */
  readonly momentum?: number;
  /** Default 0. */
  readonly dampening?: number;
  /** L2 penalty. Default 0. */
  readonly weightDecay?: number;
  /** Default false. Needs momentum and no dampening. */
  readonly nesterov?: boolean;
}

export class SGD extends Optimizer {
  momentum = 0;
  dampening = 0;
  weightDecay = 0;
  nesterov = false;
  /** By position in `params`; null before a parameter's first step, and without momentum. */
  readonly #velocities: (Tensor | null)[];

  constructor(params: Iterable<Tensor>, options: SGDOptions) {
    super(params, options.lr);
    this.#velocities = this.params.map(() => null);
    this.#setOptions(options);
  }

  #setOptions({ lr, momentum = 0, dampening = 0, weightDecay = 0, nesterov = false }: SGDOptions): void {
    if (nesterov && (momentum === 0 || dampening !== 0)) {
      throw badOption('SGD: nesterov', 'momentum > 0 and dampening 0', `${momentum} and ${dampening}`);
    }
    this.lr = checkedOption('lr', lr);
    this.momentum = checkedOption('momentum', momentum);
    this.dampening = dampening;
    this.weightDecay = checkedOption('weightDecay', weightDecay);
    this.nesterov = nesterov;
  }

  step(): void {
    const { lr, momentum, dampening, weightDecay, nesterov } = this;
    const firstStep = { lr, momentum, dampening, weightDecay, nesterov, first: true };
    const laterStep = { ...firstStep, first: false };
    const k = kernels();
    for (const [i, param] of this.params.entries()) {
      const grad = param.target?.grad;
      if (!grad) continue;
      const isFirst = this.#velocities[i] === null;
      const velocity = momentum === 0 ? null : this.#velocity(i, param);
      k.sgd(param.strided, grad.dense, velocity, param.count, isFirst ? firstStep : laterStep);
      param.storage.version++;
    }
  }

  #velocity(i: number, param: Tensor): Strided {
    this.#velocities[i] ??= new Tensor(allocate('float32', param.count), param.shape);
    return this.#velocities[i].strided;
  }

  /** Tensors are named "velocity.<position in params>". */
  stateDict(): OptimizerState {
    const { lr, momentum, dampening, weightDecay, nesterov } = this;
    const tensors: Record<string, Tensor> = {};
    for (const [i, velocity] of this.#velocities.entries()) if (velocity) tensors[`velocity.${i}`] = velocity;
    return { options: { lr, momentum, dampening, weightDecay, nesterov }, tensors };
  }

  loadStateDict(state: OptimizerState): void {
    const problems: string[] = [];
    for (const [name, tensor] of Object.entries(state.tensors)) {
      const param = this.params[Number(/^velocity\.(\d+)$/.exec(name)?.[1])];
      if (!param) problems.push(`unexpected ${name}`);
      else if (!sameShape(param.shape, tensor.shape)) {
        problems.push(`${name} expected [${param.shape.join(', ')}], got [${tensor.shape.join(', ')}]`);
      }
    }
    if (problems.length > 0) throw badStateDict(problems);
    this.#setOptions(state.options as unknown as SGDOptions);
    for (const [i, param] of this.params.entries()) {
      const saved = state.tensors[`velocity.${i}`];
      if (saved) kernels().copy(param.shape, this.#velocity(i, param), saved.strided);
      else {
        this.#velocities[i]?.dispose();
        this.#velocities[i] = null;
      }
    }
  }
}
