// The state of an outer optimizer as plain data and named memory, so that it can be sent, saved and restored without
// the engine's tensor type.
import { asBuffer, type BufferLike, elementsOf, type TypedArray } from '@ringwise/collectives';
import { badState } from './errors.ts';
import type { OuterOptimizer } from './options.ts';

/** The members of an optimizer's state that are used here: those of @ringwise/tensor. */
interface OptimizerState {
  readonly tensors?: Readonly<Record<string, BufferLike>>;
  readonly [rest: string]: unknown;
}

/** An optimizer's state without its tensors, as JSON, and the names of the tensors in order. */
export interface PlainState {
  readonly rest: string;
  readonly names: readonly string[];
}

export class OuterState {
  readonly optimizer: OuterOptimizer;
  readonly #stepInVain: () => void;

  /** `stepInVain` calls step() without gradients and undoes what that does to the parameters. */
  constructor(optimizer: OuterOptimizer, stepInVain: () => void) {
    this.optimizer = optimizer;
    this.#stepInVain = stepInVain;
  }

  plain(): PlainState {
    const { tensors = {}, ...rest } = this.#state();
    return { rest: JSON.stringify(rest), names: Object.keys(tensors).sort() };
  }

  /** Returns the memory of the optimizer's tensors in the order of their names: the tensors themselves, not copies. */
  memory(): TypedArray[] {
    const { tensors = {} } = this.#state();
    return Object.keys(tensors)
      .sort()
      .map((name) => elementsOf(asBuffer(tensors[name]!)) as TypedArray);
  }

  /**
   * Makes the optimizer allocate the tensors that `plain` names, so that memory() returns memory for their values. An
   * optimizer allocates its tensors in its first step, so it takes one without gradients. Throws ERR_ELASTIC_INVALID if
   * the names still differ.
   */
  prepare({ names }: PlainState): void {
    if (names.length === 0) return;
    if (this.plain().names.length === 0) this.#stepInVain();
    const own = this.plain().names;
    if (own.join() !== names.join())
      throw badState(
        `the outer optimizer keeps ${own.join(', ') || 'nothing'}, the state has ${names.join(', ')}`,
      );
  }

  /** Restores all of the state except the values of the tensors, which the caller has written to memory(). */
  complete({ rest, names }: PlainState): void {
    const { tensors = {} } = this.#state();
    const kept = names.length === 0 ? {} : tensors;
    const state = { ...(JSON.parse(rest) as object), tensors: kept };
    (this.optimizer.loadStateDict as (state: object) => void)(state);
  }

  #state(): OptimizerState {
    return this.optimizer.stateDict() as OptimizerState;
  }
}
