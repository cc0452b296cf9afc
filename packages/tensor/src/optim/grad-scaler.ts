// Loss scaling for float16: gradients that would vanish are multiplied on their way and divided before the step. A step
// whose gradients are not finite is left out, and the scale shrinks; after many good ones it grows.
import { kernels } from '../backends/index.ts';
import { badOptimizerParam, badOption, scalerOrder } from '../errors.ts';
import { mul } from '../ops/index.ts';
import { allocate } from '../storage.ts';
import type { Tensor } from '../tensor.ts';
import { gradOf } from './optimizer.ts';

export interface GradScalerOptions {
  /** Default 65536. */
  readonly initScale?: number;
  /** Default 2. */
  readonly growthFactor?: number;
  /** Default 0.5. */
  readonly backoffFactor?: number;
  /** Good steps until the scale grows. Default 2000. */
  readonly growthInterval?: number;
  /** False makes it do nothing but step. Default true. */
  readonly enabled?: boolean;
}

export interface GradScalerState {
  readonly scale: number;
  readonly growthTracker: number;
}

interface Steppable {
  readonly params: readonly Tensor[];
  readonly step: () => void;
}

function checkedFactor(name: string, value: number, isFitting: boolean, expected: string): number {
  if (!isFitting) throw badOption(`GradScaler: ${name}`, expected, value);
  return value;
}

export class GradScaler {
  readonly #growthFactor: number;
  readonly #backoffFactor: number;
  readonly #growthInterval: number;
  readonly #enabled: boolean;
  #scale: number;
  #growthTracker = 0;
  /** What each optimiser's gradients were found to be since the last update. */
  readonly #areFinite = new Map<Steppable, boolean>();
  readonly #stepped = new Set<Steppable>();

  constructor(options: GradScalerOptions = {}) {
    const { initScale = 65536, growthFactor = 2, backoffFactor = 0.5, growthInterval = 2000 } = options;
    this.#scale = checkedFactor('initScale', initScale, initScale > 0, 'a number > 0');
    this.#growthFactor = checkedFactor('growthFactor', growthFactor, growthFactor > 1, 'a number > 1');
    const shrinks = backoffFactor > 0 && backoffFactor < 1;
    this.#backoffFactor = checkedFactor('backoffFactor', backoffFactor, shrinks, 'a number between 0 and 1');
    this.#growthInterval = checkedFactor('growthInterval', growthInterval, growthInterval >= 1, 'steps ≥ 1');
    this.#enabled = options.enabled ?? true;
  }

  /** What losses are multiplied by; 1 when it is not enabled. */
  getScale(): number {
    return this.#enabled ? this.#scale : 1;
  }

  /** The loss that backward is to start from. Backward disposes the one that was given: read it before. */
  scale(loss: Tensor): Tensor {
    return this.#enabled ? mul(loss, this.#scale) : loss;
  }

  /** Divides the gradients, so that they can be clipped. Once per step; `step` does it where it was not done. */
  unscale_(optimizer: Steppable): void {
    if (!this.#enabled) return;
    if (this.#stepped.has(optimizer)) throw scalerOrder('unscale_', 'after step');
    if (this.#areFinite.has(optimizer)) throw scalerOrder('unscale_', 'twice');
    const params = optimizer.params.filter((param) => gradOf(param));
    for (const { shape, dtype } of params) {
      if (dtype !== 'float32' && dtype !== 'float64') throw badOptimizerParam(shape, dtype, true);
    }
    const found = allocate('float32', 1);
    kernels().copy([1], found.dense, 0);
    kernels().scale(
      params.map((param) => gradOf(param)!.dense),
      params.map((param) => param.count),
      1 / this.#scale,
      found.dense,
    );
    this.#areFinite.set(optimizer, found.memory.host[0] === 0);
    found.release();
  }

  /** Lets the optimiser step unless a gradient is not finite. Returns whether it did. */
  step(optimizer: Steppable): boolean {
    if (this.#stepped.has(optimizer)) throw scalerOrder('step', 'twice');
    if (this.#enabled && !this.#areFinite.has(optimizer)) this.unscale_(optimizer);
    const isGood = this.#areFinite.get(optimizer) ?? true;
    if (isGood) optimizer.step();
    if (this.#enabled) this.#stepped.add(optimizer);
    return isGood;
  }

  /** After all optimisers have stepped: sets the scale of the next step. */
  update(): void {
    if (!this.#enabled) return;
    if (this.#areFinite.size === 0) throw scalerOrder('update', 'before step');
    const areGood = ![...this.#areFinite.values()].includes(false);
    this.#areFinite.clear();
    this.#stepped.clear();
    this.#growthTracker = areGood ? this.#growthTracker + 1 : 0;
    if (!areGood) this.#scale *= this.#backoffFactor;
    if (this.#growthTracker < this.#growthInterval) return;
    this.#growthTracker = 0;
    const grown = this.#scale * this.#growthFactor;
    if (Number.isFinite(Math.fround(grown))) this.#scale = grown;
  }

  stateDict(): GradScalerState {
    return { scale: this.#scale, growthTracker: this.#growthTracker };
  }

  loadStateDict({ scale, growthTracker }: GradScalerState): void {
    this.#scale = checkedFactor('scale', scale, scale > 0, 'a number > 0');
    this.#growthTracker = checkedFactor('growthTracker', growthTracker, growthTracker >= 0, 'a number ≥ 0');
  }
}
