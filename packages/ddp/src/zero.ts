// The first stage of ZeRO (Rajbhandari et al., 2020): every rank steps, and remembers moments, for its share of the
// parameters only, then sends their values to the others. Gradients are averaged by ddp as always.
import { asBuffer, type BufferCarrier, type BufferView, type Group } from '@ringwise/collectives';
import { checkFunction, checkGroup, checkInteger, shown } from './check.ts';
import { invalidArgument, notConsolidated, stateOutOfReach } from './errors.ts';
import { broadcasts, bytesOf, valueCarrier } from './reducer/memory.ts';
import { runAwaiting, runBlocking, type Works } from './reducer/works.ts';

/** A tensor that an optimizer remembers. */
type Remembered = BufferCarrier & {
  readonly shape: readonly number[];
  /** A copy in host memory, where JavaScript cannot reach the tensor's own. */
  readonly dataSync?: () => ArrayBufferView;
};

/** What an optimizer of @ringwise/tensor gives as its state, as far as it is of interest here. */
export interface ShardState {
  readonly groups: readonly ({ readonly params: readonly number[] } & object)[];
  readonly steps: readonly number[];
  readonly tensors: Readonly<Record<string, Remembered>>;
}

export interface ShardOptimizer {
  readonly step: () => void;
  readonly stateDict: () => ShardState;
}

/** Memory with a shape, as plain data. */
export interface SavedTensor {
  readonly dtype: BufferView['dtype'];
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** That of one optimizer over all parameters. */
export interface ConsolidatedState {
  readonly groups: readonly ({ readonly params: readonly number[] } & object)[];
  readonly steps: readonly number[];
  readonly tensors: Readonly<Record<string, SavedTensor>>;
}

export class ZeroRedundancyOptimizer<P extends BufferCarrier, O extends ShardOptimizer> {
  /** The optimizer of this rank's share; null where there are more ranks than parameters. */
  readonly local: O | null;
  /** By rank: positions of its parameters. Largest first, each to the rank that has the least so far. */
  readonly shards: readonly (readonly number[])[];
  readonly #group: Group;
  readonly #params: readonly P[];
  #consolidated: ConsolidatedState | null = null;

  /** `make` gets this rank's parameters, such as `(shard) => new AdamW(shard, { lr })`. The same list on all ranks. */
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
    this.shards = deal(
      this.#params.map((param) => asBuffer(param).count),
      group.size,
    );
    const own = this.shards[group.rank]!.map((position) => this.#params[position]!);
    this.local = own.length > 0 ? make(own) : null;
  }

  /** Steps this rank's share and gets those of the others. Collective; blocks, so the group must be able to. */
  step(): void {
    this.local?.step();
    runBlocking(this.#exchange());
  }

  /** The same for groups that may not block. */
  async stepAsync(): Promise<void> {
    this.local?.step();
    await runAwaiting(this.#exchange());
  }

  /** Collects the state of all shares on rank `to`, for stateDict() there. Collective. */
  async consolidateStateDict(to = 0): Promise<void> {
    checkInteger('consolidateStateDict: to', to, 0, this.#group.size - 1);
    const state = this.local?.stateDict();
    const own = state && {
      ...state,
      tensors: Object.fromEntries(
        Object.entries(state.tensors).map(([name, tensor]) => [name, saved(tensor)]),
      ),
    };
    const all = await this.#group.gatherObject(own ?? null, { root: to });
    this.#consolidated = all && consolidate(all, this.shards, this.#params.length);
  }

  /** That of one optimizer with all parameters in one group, as consolidateStateDict() has found it. */
  stateDict(): ConsolidatedState {
    if (this.#consolidated === null) throw notConsolidated(this.#group.rank);
    return this.#consolidated;
  }

  /** What of a consolidated state this rank's optimizer loads, at any world size; null without parameters. */
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

function deal(counts: readonly number[], ranks: number): number[][] {
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

/** "momentum.3" is what is remembered as "momentum" of parameter 3. */
function splitName(name: string): { readonly what: string; readonly position: number } {
  const dot = name.lastIndexOf('.');
  return { what: name.slice(0, dot), position: Number(name.slice(dot + 1)) };
}
