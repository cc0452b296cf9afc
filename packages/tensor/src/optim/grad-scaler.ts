// Loss scaling for float16: the loss is multiplied by a scale, so that small gradients do not underflow, and gradients
// are divided by it before the step. A step whose gradients are not finite is skipped and the scale shrinks; after
// many good steps the scale grows.
import { kernels } from '../backends/index.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import {
  atLeastOne,
  type Check,
  checkState,
  checkValue,
  flag,
  nonNegativeInteger,
  positive,
} from '../checks/value-checks.ts';
import { allocate, type Storage } from '../core/memory/storage.ts';
import type { Tensor } from '../core/tensor.ts';
import type { Device } from '../device/device.ts';
import { badOptimizerParam, noGradients, scalerOrder } from '../errors.ts';
import { mul } from '../ops/index.ts';
import { gradOf } from './optimizer.ts';

/** Options of GradScaler. */
export interface GradScalerOptions {
  /** Default 65536. */
  readonly initScale?: number;
  /** Default 2. */
  readonly growthFactor?: number;
  /** Default 0.5. */
  readonly backoffFactor?: number;
  /** Number of good steps in a row until the scale grows. Default 2000. */
  readonly growthInterval?: number;
  /** Whether to scale; if false, step() always runs the optimiser's step and all else does nothing. Default true. */
  readonly enabled?: boolean;
}

/** State of a GradScaler. */
export interface GradScalerState {
  /** Factor of the loss. */
  readonly scale: number;
  /** Number of good steps since the scale has changed. */
  readonly growthTracker: number;
}

interface Steppable {
  readonly params: readonly Tensor[];
  readonly step: () => void;
}

const anOptimizer: Check = {
  expected: 'an optimiser',
  fits: (value) => Array.isArray((value as Partial<Steppable> | null | undefined)?.params),
};

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

/**
 * Multiplies the gradients of parameters on one device. Returns one float32 there: 0 if all elements were finite
 * before, else 1.
 */
function scaled(params: readonly Tensor[], device: Device, factor: number): Storage {
  const found = allocate('float32', 1, device);
  kernels().copy([1], found.dense, 0);
  kernels().scale(
    params.map((param) => gradOf(param)!.dense),
    params.map((param) => param.count),
    factor,
    found.dense,
  );
  return found;
}

/** Scales the loss for training in float16, and skips steps whose gradients are not finite. */
export class GradScaler {
  readonly #growthFactor: number;
  readonly #backoffFactor: number;
  readonly #growthInterval: number;
  readonly #enabled: boolean;
  #scale: number;
  #growthTracker = 0;
  /** Whether the gradients of each optimiser were finite, since the last update; null if it had no gradients. */
  readonly #areFinite = new Map<Steppable, boolean | null>();
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

  /** Returns the factor of losses; 1 if scaling is not enabled. */
  getScale(): number {
    return this.#enabled ? this.#scale : 1;
  }

  /** Returns the scaled loss, on which the caller calls backward. Backward disposes `loss`, so read it before. */
  scale(loss: Tensor): Tensor {
    return this.#enabled ? mul(loss, this.#scale) : loss;
  }

  /**
   * Divides the gradients by the scale, so that they can be clipped. Waits for the result. Call it at most once per
   * step; without a call, step() does it.
   */
  unscale_(optimizer: Steppable): void {
    checkValue('GradScaler.unscale_', optimizer, anOptimizer);
    if (!this.#enabled) return;
    if (this.#stepped.has(optimizer)) throw scalerOrder('unscale_', 'after step');
    if (this.#areFinite.has(optimizer)) throw scalerOrder('unscale_', 'twice');
    const params = optimizer.params.filter((param) => gradOf(param));
    for (const { shape, dtype } of params) {
      if (dtype !== 'float32' && dtype !== 'float64') throw badOptimizerParam(shape, dtype, true);
    }
    if (params.length === 0) {
      this.#areFinite.set(optimizer, null);
      return;
    }
    const factor = 1 / this.#scale;
    const devices = [...new Set(params.map(({ device }) => device))];
    const found = devices.map((device) =>
      scaled(
        params.filter((param) => param.device === device),
        device,
        factor,
      ),
    );
    // Read after all devices have begun, because a read waits.
    this.#areFinite.set(
      optimizer,
      found.every(({ memory }) => memory.host[0] === 0),
    );
    for (const flag of found) flag.release();
  }

  /**
   * Runs the optimiser's step unless a gradient is not finite. Returns whether it ran. Throws ERR_TENSOR_ARGUMENT if no
   * parameter has a gradient.
   */
  step(optimizer: Steppable): boolean {
    checkValue('GradScaler.step', optimizer, anOptimizer);
    if (this.#stepped.has(optimizer)) throw scalerOrder('step', 'twice');
    if (this.#enabled && !this.#areFinite.has(optimizer)) this.unscale_(optimizer);
    const isGood = this.#enabled ? this.#areFinite.get(optimizer)! : true;
    if (isGood === null) throw noGradients();
    if (isGood) optimizer.step();
    if (this.#enabled) this.#stepped.add(optimizer);
    return isGood;
  }

  /** Sets the scale of the next step: `newScale`, if given. Call it after all optimisers have stepped. */
  update(newScale?: number): void {
    if (newScale !== undefined) checkValue('GradScaler.update: newScale', newScale, positive);
    if (!this.#enabled) return;
    const seen = [...this.#areFinite.values()].filter((one) => one !== null);
    if (newScale === undefined && seen.length === 0) throw scalerOrder('update', 'before step');
    const areGood = !seen.includes(false);
    this.#areFinite.clear();
    this.#stepped.clear();
    if (newScale !== undefined) {
      this.#scale = newScale;
      return;
    }
    this.#growthTracker = areGood ? this.#growthTracker + 1 : 0;
    if (!areGood) this.#scale *= this.#backoffFactor;
    if (this.#growthTracker < this.#growthInterval) return;
    this.#growthTracker = 0;
    const grown = this.#scale * this.#growthFactor;
    if (Number.isFinite(Math.fround(grown))) this.#scale = grown;
  }

  /** Returns the scale and the count of good steps, as plain JSON. */
  stateDict(): GradScalerState {
    return { scale: this.#scale, growthTracker: this.#growthTracker };
  }

  /** Continues from a state that stateDict() returned. */
  loadStateDict(state: GradScalerState): void {
    checkState('loadStateDict', state);
    const { scale, growthTracker } = state;
    checkValue('GradScaler: scale', scale, positive);
    checkValue('GradScaler: growthTracker', growthTracker, nonNegativeInteger);
    this.#scale = scale;
    this.#growthTracker = growthTracker;
  }
}
