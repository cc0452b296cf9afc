// Loss scaling for float16: gradients that would vanish are multiplied on their way and divided before the step. A step
// whose gradients are not finite is left out, and the scale shrinks; after many good ones it grows.
import { kernels } from '../backends/index.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { atLeastOne, checkValue, flag, nonNegative, positive } from '../checks/value-checks.ts';
import { allocate } from '../core/storage.ts';
import type { Tensor } from '../core/tensor.ts';
import { badOptimizerParam, scalerOrder } from '../errors.ts';
import { mul } from '../ops/index.ts';
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

const gradScalerOptions = optionChecks<GradScalerOptions>({
  initScale: positive,
  growthFactor: { expected: 'a number > 1', fits: (value) => positive.fits(value) && (value as number) > 1 },
  backoffFactor: {
    expected: 'a number between 0 and 1',
    fits: (value) => positive.fits(value) && (value as number) < 1,
  },
  growthInterval: { ...atLeastOne, expected: 'steps ≥ 1' },
  enabled: flag,
});

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
    checkOptions('GradScaler', options, gradScalerOptions);
    const { initScale = 65536, growthFactor = 2, backoffFactor = 0.5, growthInterval = 2000 } = options;
    this.#scale = initScale;
    this.#growthFactor = growthFactor;
    this.#backoffFactor = backoffFactor;
    this.#growthInterval = growthInterval;
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
    checkValue('GradScaler: scale', scale, positive);
    checkValue('GradScaler: growthTracker', growthTracker, nonNegative);
    this.#scale = scale;
    this.#growthTracker = growthTracker;
  }
}
