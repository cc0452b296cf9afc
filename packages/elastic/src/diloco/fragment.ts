// One fragment of the model: its local parameters, the global ones, the buffer in which their difference is sent, and
// the outer optimizer.
import { createHash } from 'node:crypto';
import { elementsOf } from '@ringwise/collectives';
import type { GradParam } from '@ringwise/ddp';
import { shown } from '../check.ts';
import { noClone, notAnOptimizer } from './errors.ts';
import type { OuterOptimizer } from './options.ts';
import { OuterState } from './outer-state.ts';

type Make = 'average' | ((params: never[]) => OuterOptimizer);

export class Fragment {
  readonly index: number;
  /** The parameters that the inner optimizer changes. */
  readonly params: readonly GradParam[];
  /** The difference global − local while it is averaged, then its average; contiguous, in the order of `params`. */
  readonly flat: Float32Array<ArrayBuffer>;
  /** The outer optimizer and its state; null if the average is applied directly. */
  readonly outer: OuterState | null;
  /** Samples that this rank has trained since the last average started. */
  samples = 0;
  /**
   * Rounding errors of the last applied average, divided by the weight that this rank had in it; null unless the wire
   * needs them. A failed average leaves them unchanged.
   */
  residual: Float32Array<ArrayBuffer> | null;
  /** Rounding errors of the average in flight, which are those of weighted differences. */
  nextResidual: Float32Array<ArrayBuffer> | null;
  /**
   * Copies of the parameters for the outer optimizer; they hold the global values. Empty without an outer optimizer.
   */
  readonly #clones: readonly GradParam[];
  /** The global values without an outer optimizer. */
  readonly #values: readonly Float32Array[];

  constructor(index: number, params: readonly GradParam[], make: Make, keepsResidual: boolean) {
    this.index = index;
    this.params = params;
    const count = params.reduce((sum, { value }) => sum + value.count, 0);
    this.flat = new Float32Array(count);
    this.residual = keepsResidual ? new Float32Array(count) : null;
    this.nextResidual = keepsResidual ? new Float32Array(count) : null;
    if (make === 'average') {
      this.#clones = [];
      this.#values = params.map((param) => floats(param).slice());
      this.outer = null;
      return;
    }
    this.#values = [];
    this.#clones = params.map((param) => param.clone?.() ?? refuse(param));
    let offset = 0;
    for (const clone of this.#clones) {
      const { count } = clone.value;
      (clone.bindGrad ?? refuse(clone))(hostView(this.flat.subarray(offset, offset + count)));
      offset += count;
    }
    const optimizer = make(this.#clones.map((clone) => clone.key ?? refuse(clone)) as never[]);
    const { step, stateDict, loadStateDict } = (optimizer ?? {}) as Partial<OuterOptimizer>;
    if (![step, stateDict, loadStateDict].every((member) => typeof member === 'function'))
      throw notAnOptimizer(shown(optimizer));
    this.outer = new OuterState(optimizer, () => this.#stepInVain(optimizer));
  }

  /** The global values of each parameter, in the order of `params`: the memory itself. */
  get globals(): readonly Float32Array[] {
    return this.#clones.length > 0 ? this.#clones.map(floats) : this.#values;
  }

  /** The local values of each parameter: the memory itself. */
  get locals(): readonly Float32Array[] {
    return this.params.map(floats);
  }

  /** Writes (global − local) · weight to `flat`, and residual · weight to `nextResidual`. */
  subtract(weight: number): void {
    const { globals, locals, flat } = this;
    let offset = 0;
    for (const [i, global] of globals.entries()) {
      const local = locals[i]!;
      for (let k = 0; k < global.length; k++) flat[offset + k] = (global[k]! - local[k]!) * weight;
      offset += global.length;
    }
    const { residual, nextResidual } = this;
    if (residual !== null) for (let k = 0; k < residual.length; k++) nextResidual![k] = residual[k]! * weight;
  }

  /**
   * Takes the outer step: `flat` has the sum of the weighted differences of all ranks, and `weight` is the sum of their
   * weights; `own` is the weight of this rank, and `mean` that of all. If `weight` is 0, no rank has trained, and the
   * global parameters do not change.
   */
  advance({ weight, own, mean }: Readonly<Record<'weight' | 'own' | 'mean', number>>): void {
    if (weight === 0) return;
    const { flat, residual, nextResidual } = this;
    if (residual !== null) {
      // A rank with weight 0 has sent no part of its rounding errors, and may have rounded the sums of other ranks.
      const unsent = own === 0 ? 1 : 0;
      for (let k = 0; k < residual.length; k++)
        nextResidual![k] = nextResidual![k]! / (own || mean) + residual[k]! * unsent;
      [this.residual, this.nextResidual] = [nextResidual, residual];
    }
    for (let k = 0; k < flat.length; k++) flat[k] = flat[k]! / weight;
    if (this.outer !== null) {
      this.outer.optimizer.step();
      return;
    }
    let offset = 0;
    for (const global of this.#values) {
      for (let k = 0; k < global.length; k++) global[k] = global[k]! - flat[offset + k]!;
      offset += global.length;
    }
  }

  /** Sets the local parameters to mix · local + (1 − mix) · global. */
  adopt(mix: number): void {
    const { globals, locals } = this;
    for (const [i, local] of locals.entries()) {
      const global = globals[i]!;
      this.params[i]!.value.written?.();
      if (mix === 0) local.set(global);
      else for (let k = 0; k < local.length; k++) local[k] = mix * local[k]! + (1 - mix) * global[k]!;
    }
  }

  /**
   * Makes the optimizer take a step without gradients and restores the global values, so that it allocates its state.
   */
  #stepInVain(optimizer: OuterOptimizer): void {
    const before = this.globals.map((values) => values.slice());
    this.flat.fill(0);
    optimizer.step();
    this.setGlobals(before);
  }

  setGlobals(values: readonly Float32Array[]): void {
    for (const [i, global] of this.globals.entries()) global.set(values[i]!);
    for (const clone of this.#clones) clone.value.written?.();
  }

  setLocals(values: readonly Float32Array[]): void {
    for (const [i, local] of this.locals.entries()) local.set(values[i]!);
    for (const { value } of this.params) value.written?.();
  }

  /** Copies the global values to `flat`. */
  pack(): void {
    let offset = 0;
    for (const global of this.globals) {
      this.flat.set(global, offset);
      offset += global.length;
    }
  }

  /** Copies the global values from `flat`. */
  unpack(): void {
    let end = 0;
    const parts = this.globals.map(({ length }) => {
      end += length;
      return this.flat.subarray(end - length, end);
    });
    this.setGlobals(parts);
  }

  /** Returns the first 48 bits of the SHA-256 of the global values, as a number. */
  hash(): number {
    const hash = createHash('sha256');
    for (const { buffer, byteOffset, byteLength } of this.globals)
      hash.update(new Uint8Array(buffer, byteOffset, byteLength));
    return hash.digest().readUIntBE(0, 6);
  }
}

const floats = ({ value }: GradParam): Float32Array => elementsOf(value) as Float32Array;

const hostView = (host: Float32Array) =>
  ({ dtype: 'float32', count: host.length, device: { kind: 'cpu', index: 0 }, host, handle: null }) as const;

function refuse({ name }: GradParam): never {
  throw noClone(name);
}
