// The first stage of ZeRO (Rajbhandari et al., 2020): every rank updates only its share of the parameters,
// and keeps only their optimizer state, then sends the new values to the other ranks. Gradients are averaged
// by ddp as usual.
import { asBuffer, type BufferCarrier, type BufferView, type Group } from '@ringwise/collectives';
import { checkFunction, checkGroup, checkInteger, shown } from './check.ts';
import { invalidArgument, notConsolidated, severalGroups, stateOutOfReach } from './errors.ts';
import { broadcasts, bytesOf, valueCarrier } from './reducer/memory.ts';
import { runAwaiting, runBlocking, type Works } from './reducer/works.ts';

/** A tensor of an optimizer's state. */
type Remembered = BufferCarrier & {
  readonly shape: readonly number[];
  /** Returns a copy in host memory, for tensors that JavaScript cannot access. */
  readonly dataSync?: () => ArrayBufferView;
};

/** The members of an optimizer state of @ringwise/tensor that are used here. */
export interface ShardState {
  /** Options of each group of parameters, with the positions of its parameters. */
  readonly groups: readonly ({ readonly params: readonly number[] } & object)[];
  /** Number of steps of each parameter. */
  readonly steps: readonly number[];
  /** State of the parameters, by "<name>.<position of the parameter>". */
  readonly tensors: Readonly<Record<string, Remembered>>;
}

/** What ZeroRedundancyOptimizer needs of the optimizer of one rank's share. */
export interface ShardOptimizer {
  /** Changes the parameters of the share by their gradients. */
  readonly step: () => void;
  /** Returns the state of the share, whose tensors stay the optimizer's own. */
  readonly stateDict: () => ShardState;
}

/** Memory with a shape, as plain data. */
export interface SavedTensor {
  /** Type of the elements. */
  readonly dtype: BufferView['dtype'];
  /** Size of each dimension. */
  readonly shape: readonly number[];
  /** The elements, row by row. */
  readonly bytes: Uint8Array;
}

/** The state of a single optimizer over all parameters. */
export interface ConsolidatedState {
  /** Options of each group of parameters, with the positions of its parameters. */
  readonly groups: readonly ({ readonly params: readonly number[] } & object)[];
  /** Number of steps of each parameter. */
  readonly steps: readonly number[];
  /** State of the parameters, by "<name>.<position of the parameter>". */
  readonly tensors: Readonly<Record<string, SavedTensor>>;
}

/**
 * An optimizer whose state is spread over the ranks (ZeRO, stage 1): each rank updates its share of the
 * parameters, then sends the new values to all others.
 *
 * @example
 * ```ts
 * const zero = new ZeroRedundancyOptimizer(net.parameters(), group, (shard) => new AdamW(shard, { lr: 1e-3 }));
 * zero.step(); // after a backward of ddp()
 * ```
 */
export class ZeroRedundancyOptimizer<P extends BufferCarrier, O extends ShardOptimizer> {
  /** The optimizer of this rank's share; null if there are more ranks than parameters. */
  readonly local: O | null;
  /**
   * Positions of each rank's parameters. Parameters are assigned from the largest on, each to the rank with
   * the least so far.
   */
  readonly shards: readonly (readonly number[])[];
  readonly #group: Group;
  readonly #params: readonly P[];
  #consolidated: ConsolidatedState | null = null;

  /**
   * `make` gets this rank's parameters, for example `(shard) => new AdamW(shard, { lr })`. `params` must be
   * the same list on all ranks. The optimizer must update each parameter by its own gradient alone, as all of
   * @ringwise/tensor do but LBFGS: one whose step() takes an argument, such as a function that evaluates the loss,
   * is refused. Parameters stay whole, so Adafactor and Muon work, too. Throws ERR_DDP_INVALID.
   */
  constructor(params: Iterable<P>, group: Group, make: (shard: P[]) => O) {
    checkGroup('ZeroRedundancyOptimizer', group);
    checkFunction(
      'ZeroRedundancyOptimizer: make',
      make,
      'a function such as (shard) => new AdamW(shard, { lr })',
    );
    if (typeof params?.[Symbol.iterator] !== 'function') {
      throw invalidArgument(
        'ZeroRedundancyOptimizer: params',
        'a list such as net.parameters()',
        shown(params),
      );
    }
    this.#params = [...params];
    this.#group = group;
    this.shards = assign(
      this.#params.map((param) => asBuffer(param).count),
      group.size,
    );
    const own = this.shards[group.rank]!.map((position) => this.#params[position]!);
    this.local = own.length > 0 ? checkedOptimizer(make(own)) : null;
  }

  /**
   * Updates this rank's share and receives the other ranks' shares. Collective. Blocks, so the group must be
   * able to block.
   */
  step(): void {
    this.local?.step();
    runBlocking(this.#exchange());
  }

  /** Like step(), for groups that cannot block. Resolves when all values have arrived. */
  async stepAsync(): Promise<void> {
    this.local?.step();
    await runAwaiting(this.#exchange());
  }

  /**
   * Collects the state of all shares on rank `to`, for stateDict() there. Collective. Throws ERR_DDP_INVALID if the
   * optimizers have more than one group of parameters each.
   */
  async consolidateStateDict(to = 0): Promise<void> {
    checkInteger('consolidateStateDict: to', to, 0, this.#group.size - 1);
    const state = this.local?.stateDict();
    if (state !== undefined && state.groups.length > 1) throw severalGroups(state.groups.length);
    const own = state && {
      ...state,
      tensors: Object.fromEntries(
        Object.entries(state.tensors).map(([name, tensor]) => [name, saved(tensor)]),
      ),
    };
    const all = await this.#group.gatherObject(own ?? null, { root: to });
    this.#consolidated = all && consolidate(all, this.shards, this.#params.length);
  }

  /**
   * Returns the state of a single optimizer with all parameters in one group, as of the last
   * consolidateStateDict(). Throws on ranks without it.
   */
  stateDict(): ConsolidatedState {
    if (this.#consolidated === null) throw notConsolidated(this.#group.rank);
    return this.#consolidated;
  }

  /**
   * Returns the part of a consolidated state that this rank's optimizer loads; null if the rank has no
   * parameters. The state may have been saved with another number of ranks.
   */
  shardOf(state: ConsolidatedState): ConsolidatedState | null {
    const own = this.shards[this.#group.rank]!;
    if (own.length === 0) return null;
    const tensors: Record<string, SavedTensor> = {};
    for (const [name, tensor] of Object.entries(state.tensors)) {
      const { what, position } = splitName(name);
      const at = own.indexOf(position);
      if (at !== -1) tensors[`${what}.${at}`] = tensor;
    }
    const [options] = state.groups;
    return {
      groups: [{ ...options, params: [...own.keys()] }],
      steps: own.map((position) => state.steps[position]!),
      tensors,
    };
  }

  *#exchange(): Works {
    const works = this.shards.flatMap((shard, root) => {
      const values = shard.map((position) => valueCarrier(asBuffer(this.#params[position]!)));
      return broadcasts(values, this.#group, root);
    });
    for (const work of works) yield work;
  }
}

/** Refuses an optimizer that evaluates the loss in its step, because that needs all parameters and all ranks. */
function checkedOptimizer<O extends ShardOptimizer>(optimizer: O): O {
  const { step, stateDict } = (optimizer ?? {}) as Partial<ShardOptimizer>;
  const isOptimizer = typeof step === 'function' && typeof stateDict === 'function';
  if (isOptimizer && step.length === 0) return optimizer;
  throw invalidArgument(
    'ZeroRedundancyOptimizer: make',
    'an optimizer that updates each parameter by its own gradient, with step() without arguments and stateDict()',
    isOptimizer
      ? `${optimizer.constructor.name}, whose step() takes an argument. Make it of all parameters, on every rank`
      : shown(optimizer),
  );
}

function assign(counts: readonly number[], ranks: number): number[][] {
  const shards = Array.from({ length: ranks }, (): number[] => []);
  const loads = new Float64Array(ranks);
  const largestFirst = [...counts.keys()].sort((a, b) => counts[b]! - counts[a]! || a - b);
  for (const position of largestFirst) {
    const lightest = loads.indexOf(Math.min(...loads));
    shards[lightest]!.push(position);
    loads[lightest]! += counts[position]!;
  }
  return shards.map((shard) => shard.sort((a, b) => a - b));
}

function saved(tensor: Remembered): SavedTensor {
  const { dtype, host } = asBuffer(tensor);
  const elements = host ?? tensor.dataSync?.();
  if (elements === undefined) throw stateOutOfReach();
  return { dtype, shape: [...tensor.shape], bytes: bytesOf(elements).slice() };
}

function consolidate(
  states: readonly (ConsolidatedState | null)[],
  shards: readonly (readonly number[])[],
  count: number,
): ConsolidatedState {
  const steps = new Array<number>(count).fill(0);
  const tensors: Record<string, SavedTensor> = {};
  for (const [rank, state] of states.entries()) {
    if (state === null) continue;
    for (const [at, position] of shards[rank]!.entries()) steps[position] = state.steps[at]!;
    for (const [name, tensor] of Object.entries(state.tensors)) {
      const { what, position } = splitName(name);
      tensors[`${what}.${shards[rank]![position]!}`] = tensor;
    }
  }
  const options = states.find((state) => state !== null)?.groups[0];
  return { groups: [{ ...options, params: Array.from({ length: count }, (_, i) => i) }], steps, tensors };
}

/** Splits a name: "momentum.3" is the state "momentum" of parameter 3. */
function splitName(name: string): { readonly what: string; readonly position: number } {
  const dot = name.lastIndexOf('.');
  return { what: name.slice(0, dot), position: Number(name.slice(dot + 1)) };
}
