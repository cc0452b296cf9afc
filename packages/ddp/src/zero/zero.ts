// The first stage of ZeRO (Rajbhandari et al., 2020): every rank updates only its shard of the parameters, and keeps
// only their optimizer state, then sends the new values to the other ranks. Gradients are averaged by ddp as usual.
//
// With two copies, a second rank makes the same update. It has all averages, so it needs no message to keep the owner's
// state, and a loss cannot leave its copy half updated. If the owner is lost, even while it sends new values, the
// second rank sends its copy instead.
import { isDeepStrictEqual } from 'node:util';
import { asBuffer, type BufferCarrier, type Group } from '@ringwise/collectives';
import { checkGroup, checkInteger, checkMaker, checkOptions, messageOf, shown } from '../check.ts';
import {
  badOptions,
  cannotLoad,
  invalidArgument,
  notConsolidated,
  severalGroups,
  shardsFailed,
  stateLost,
} from '../errors.ts';
import { refuseForeign } from '../foreign-members.ts';
import { broadcasts, valueCarrier } from '../reducer/memory.ts';
import { runAwaiting, runBlocking, type Works } from '../reducer/works.ts';
import { type Assignment, assignmentOf, holdersOf, lostOf, movesOf } from './assignment.ts';
import { move } from './move.ts';
import {
  byParam,
  type LoadableTensor,
  loadable,
  mapTensors,
  type ParamStateOf,
  type Remembered,
  type SavedTensor,
  type StateOf,
  saved,
  together,
} from './state.ts';

/** The members of an optimizer state of @ringwise/tensor that are used here. */
export type ShardState = StateOf<Remembered>;

/** The state of a single optimizer over all parameters. */
export type ConsolidatedState = StateOf<LoadableTensor>;

/** The members that ZeroRedundancyOptimizer needs from the optimizer of one rank's shard. */
export interface ShardOptimizer {
  /** Changes the parameters of the shard by their gradients. */
  readonly step: () => void;
  /** Returns the state of the shard. The optimizer keeps ownership of the tensors. */
  readonly stateDict: () => ShardState;
  /** Copies a state that stateDict() returned. Needed for rebind() and loadStateDict(). */
  readonly loadStateDict?: (state: never) => unknown;
  /** Groups of parameters with their options. Needed for options that change during training. */
  readonly groups?: readonly object[];
  /** Drops the gradients of its parameters. */
  readonly zeroGrad?: () => void;
}

/** Options of ZeroRedundancyOptimizer. */
export interface ZeroOptions {
  /**
   * Number of ranks that keep the state of each parameter: 1, or 2, so that rebind() works after the loss of one. With
   * 2 every rank updates twice as many parameters and has twice as much state, but sends the same amount. Default 1.
   */
  readonly copies?: 1 | 2;
}

/** Options of ZeroRedundancyOptimizer.rebind(). */
export interface RebindOptions {
  /** Ranks whose own state is ignored, because they have not trained with the others. Default: none. */
  readonly joined?: readonly number[];
  /** Ranks that are about to leave and get no parameters. Default: none. */
  readonly leaving?: readonly number[];
}

/** Parameters that this rank updates. */
interface Held<O> {
  readonly positions: readonly number[];
  readonly optimizer: O | null;
}

/** The state of a rank's shard, as it is sent. */
interface SavedShard {
  readonly options: object | null;
  readonly states: readonly ParamStateOf<SavedTensor>[];
}

const nothing = { positions: [], optimizer: null };

/**
 * An optimizer whose state is sharded over the ranks (ZeRO, stage 1): each rank updates its shard of the parameters,
 * then sends the new values to all others.
 *
 * @example
 * ```ts
 * const zero = new ZeroRedundancyOptimizer(net.parameters(), group, (shard) => new AdamW(shard, { lr: 1e-3 }));
 * zero.step(); // after a backward of ddp()
 * ```
 */
export class ZeroRedundancyOptimizer<P extends BufferCarrier, O extends ShardOptimizer> {
  /** All parameters; this rank updates a shard of them. */
  readonly params: readonly P[];
  readonly #make: (shard: P[]) => O;
  readonly #counts: readonly number[];
  /** Number of ranks that keep the state of each parameter, if the group has as many. */
  readonly copies: 1 | 2;
  #group: Group;
  #assignment: Assignment;
  #own: Held<O>;
  #copy: Held<O> = nothing;
  /** States that other ranks have sent to this one, kept until all ranks have received theirs. */
  readonly #arrived = new Map<number, ParamStateOf<SavedTensor>>();
  #whole: O | null = null;
  /** The options that `whole` and the shards had when they were last made equal. */
  #agreed: object | null = null;
  /** Whether this rank has updated values that it has not exchanged. */
  #owes = false;
  #consolidated: ConsolidatedState | null = null;

  /**
   * `make` gets this rank's parameters, for example `(shard) => new AdamW(shard, { lr })`; with copies, rebind() or
   * `whole` it is called again. `params` must be the same list on all ranks. The optimizer must update each parameter
   * by its own gradient alone, as all optimizers of @ringwise/tensor except LBFGS do. An optimizer whose step() takes
   * an argument, such as a function that evaluates the loss, is refused. Parameters are not split, so Adafactor and
   * Muon work, too. Throws ERR_DDP_INVALID.
   */
  constructor(params: Iterable<P>, group: Group, make: (shard: P[]) => O, options: ZeroOptions = {}) {
    checkGroup('ZeroRedundancyOptimizer', group);
    checkMaker(
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
    checkOptions('ZeroRedundancyOptimizer', options, { known: ['copies'] });
    const { copies = 1 } = options;
    checkInteger('ZeroRedundancyOptimizer: copies', copies, 1, 2);
    this.params = [...params];
    checkDistinct(this.params);
    this.#make = (shard) => checkedOptimizer(make(shard));
    this.#counts = this.params.map((param) => asBuffer(param).count);
    this.copies = copies;
    this.#group = group;
    this.#assignment = assignmentOf(this.#counts, group, copies);
    this.#own = this.#fresh(this.shards[group.rank]!);
    this.#copy = this.#fresh(this.#assignment.copied[group.rank]!);
  }

  /** The optimizer of this rank's shard; null if there are more ranks than parameters. rebind() makes a new one. */
  get local(): O | null {
    return this.#own.optimizer;
  }

  /**
   * Positions of each rank's parameters. Parameters are assigned from the largest on, each to the rank with the fewest
   * elements so far.
   */
  get shards(): readonly (readonly number[])[] {
    return this.#assignment.owned;
  }

  /**
   * An optimizer of all parameters that never steps, so it has no state. All shards use the options of its group, such
   * as the learning rate, also after rebind(). Pass it to a learning-rate schedule. Throws ERR_DDP_INVALID if it has
   * more than one group of parameters.
   */
  get whole(): O {
    const whole = this.#all();
    const groups = whole.groups?.length ?? 0;
    if (groups > 1) throw severalGroups('whole', groups);
    this.#alignOptions();
    return whole;
  }

  /**
   * Updates this rank's shard and receives the new values of the other shards. Collective. Blocks, so the group must be
   * able to block.
   */
  step(): void {
    this.update();
    runBlocking(this.#exchange());
  }

  /** Like step(), for groups that cannot block. Resolves when all values have arrived. */
  async stepAsync(): Promise<void> {
    this.update();
    await runAwaiting(this.#exchange());
  }

  /** The first half of step(): updates this rank's shard. Sends nothing; call exchange() afterwards. Not collective. */
  update(): void {
    this.#alignOptions();
    for (const { optimizer } of [this.#own, this.#copy]) optimizer?.step();
    this.#owes = true;
  }

  /**
   * The second half of step(): receives the new values of the other shards. Does nothing without an update().
   * Collective. Blocks if the group can, and resolves when all values have arrived.
   */
  async exchange(): Promise<void> {
    if (!this.#owes) return;
    if (this.#group.supports.sync) runBlocking(this.#exchange());
    else await runAwaiting(this.#exchange());
  }

  /** Drops the gradients of all parameters, or makes them zero, as the optimizer does. Not collective. */
  zeroGrad(): void {
    this.#all().zeroGrad?.();
  }

  /**
   * Assigns the parameters to the ranks of `group`, and moves the state to the ranks that keep it from now on: after a
   * loss, with the group of the survivors, or to train on with other ranks. First repeats an exchange of values that a
   * loss has interrupted, from a rank that has updated them. Gradients are not touched. Collective in `group`; the
   * previous group may have failed. Rejects with ERR_DDP_STATE_LOST on all ranks if no remaining rank has the state of
   * a parameter; with ERR_DDP_INVALID on all ranks if an optimizer has more than one group of parameters; and with the
   * group's error if a rank is lost: then call it again with the next group.
   */
  async rebind(group: Group, options: RebindOptions = {}): Promise<void> {
    checkGroup('rebind', group);
    checkOptions('rebind', options, { known: ['joined', 'leaving'] });
    const { joined = [], leaving = [] } = options;
    const held = await this.repair(group, joined);
    const states = this.#states();
    const assignment = assignmentOf(this.#counts, group, this.copies, leaving);
    await move(
      movesOf(held, assignment),
      group,
      (position) => this.#arrived.get(position) ?? mapTensors(states.get(position)!, saved),
      (position, state) => void this.#arrived.set(position, state),
    );
    // No rank drops its old state before all ranks have received their new one.
    await group.barrier();
    const shared = this.#options();
    const [own, copy] = [assignment.owned[group.rank]!, assignment.copied[group.rank]!].map((positions) =>
      this.#with(positions, states, shared),
    );
    this.#group = group;
    this.#assignment = assignment;
    this.#own = own!;
    this.#copy = copy!;
    this.#arrived.clear();
  }

  /**
   * Does the first part of rebind(): repeats an exchange of values that a loss has interrupted. Resolves with the
   * positions of the parameters whose state each rank has.
   */
  async repair(group: Group, joined: readonly number[] = []): Promise<number[][]> {
    if (joined.includes(group.rank)) this.#drop();
    const claims = await group.allGatherObject({
      held: this.#held(),
      owes: this.#owes,
      groups: this.#groupCount(),
    });
    const groups = Math.max(...claims.map((claim) => claim.groups));
    if (groups > 1) throw severalGroups('rebind', groups);
    const held = claims.map((claim) => claim.held);
    const lost = lostOf(held, this.params.length);
    if (lost.length > 0) throw stateLost(lost, this.params.length, this.copies);
    if (claims.some(({ owes }) => owes)) {
      const holders = holdersOf(held);
      const roots = this.params.map((_, position) => holders.get(position)![0]!);
      await runAwaiting(
        Array.from({ length: group.size }, (_, root) => {
          const values = this.params.filter((_, position) => roots[position] === root).map(sendable);
          return values.length > 0 ? broadcasts(values, group, root) : [];
        }).flat(),
      );
    }
    this.#owes = false;
    return held;
  }

  /**
   * Collects the state of all shards on rank `to`, for stateDict() there. Collective. Rejects with ERR_DDP_INVALID on
   * all ranks if the optimizer of a rank has more than one group of parameters, or its state cannot be read.
   */
  async consolidateStateDict(to = 0): Promise<void> {
    checkInteger('consolidateStateDict: to', to, 0, this.#group.size - 1);
    const own = this.#savedShard();
    // Ranks with a readable shard, and those without one, would wait in the gather for a rank that has thrown.
    const problems = await this.#group.allGatherObject('error' in own ? messageOf(own.error) : null);
    if ('error' in own) throw own.error;
    if (problems.some((problem) => problem !== null)) throw shardsFailed('consolidateStateDict', problems);
    const all = await this.#group.gatherObject(own.shard, { root: to });
    if (all === null) {
      this.#consolidated = null;
      return;
    }
    const states: ParamStateOf<LoadableTensor>[] = this.params.map(() => ({ steps: 0, tensors: {} }));
    for (const [rank, part] of all.entries())
      for (const [i, each] of (part?.states ?? []).entries())
        states[this.shards[rank]![i]!] = mapTensors(each, loadable);
    this.#consolidated = together(states, all.find((part) => part !== null)?.options ?? {});
  }

  /**
   * Returns the state of a single optimizer with all parameters in one group, as of the last consolidateStateDict().
   * An optimizer of one process loads it, too. The arrays are copies. Throws on ranks without it.
   */
  stateDict(): ConsolidatedState {
    if (this.#consolidated === null) throw notConsolidated(this.#group.rank);
    return this.#consolidated;
  }

  /**
   * Loads a consolidated state, saved with any number of ranks, or the state of an optimizer of one process: this
   * rank's part of it, and the options. All ranks must load the same state. Not collective.
   *
   * @throws DdpError `ERR_DDP_INVALID` if the state has several groups of parameters.
   */
  loadStateDict(state: ConsolidatedState | ShardState): void {
    checkState('loadStateDict', state, this.params.length);
    const states = new Map(
      byParam<LoadableTensor | Remembered>(state).map((each, position) => [
        position,
        mapTensors(each, loadable),
      ]),
    );
    const options = optionsOf(state.groups[0]) ?? {};
    for (const { positions, optimizer } of [this.#own, this.#copy])
      if (optimizer !== null) load(optimizer, positions, states, options);
    const group = this.params.length > 0 ? groupOf(this.whole) : null;
    if (group !== null) Object.assign(group, copied(options));
    this.#alignOptions();
  }

  /**
   * Returns the part of a state, as for loadStateDict(), that this rank's optimizer loads; null if the rank has no
   * parameters.
   */
  shardOf(state: ConsolidatedState | ShardState): ConsolidatedState | null {
    const own = this.shards[this.#group.rank]!;
    checkState('shardOf', state, this.params.length);
    if (own.length === 0) return null;
    const states = byParam<LoadableTensor | Remembered>(state);
    return together(
      own.map((position) => mapTensors(states[position]!, loadable)),
      state.groups[0],
    );
  }

  *#exchange(): Works {
    const works = this.shards.flatMap((shard, root) => {
      const values = shard.map((position) => sendable(this.params[position]!));
      return broadcasts(values, this.#group, root);
    });
    for (const work of works) yield work;
    this.#owes = false;
  }

  /** Positions of the parameters whose state this rank has. */
  #held(): number[] {
    return [...new Set([...this.#own.positions, ...this.#copy.positions, ...this.#arrived.keys()])];
  }

  /** Returns the largest number of groups of parameters of this rank's optimizers; 0 without one. */
  #groupCount(): number {
    const optimizers = [this.#own.optimizer, this.#copy.optimizer];
    return Math.max(...optimizers.map((optimizer) => optimizer?.stateDict().groups.length ?? 0));
  }

  /** Returns the options and states of this rank's shard, null for a rank without one; or the error of reading them. */
  #savedShard(): { readonly shard: SavedShard | null } | { readonly error: unknown } {
    try {
      const state = this.local?.stateDict();
      if (state === undefined) return { shard: null };
      if (state.groups.length > 1) throw severalGroups('consolidateStateDict', state.groups.length);
      const states = byParam(state).map((each) => mapTensors(each, saved));
      // A schedule may have changed the options of `whole` since the last update, which gives them to the shards.
      this.#alignOptions();
      return { shard: { options: optionsOf(this.local?.stateDict().groups[0]), states } };
    } catch (error) {
      return { error };
    }
  }

  #drop(): void {
    this.#own = nothing;
    this.#copy = nothing;
    this.#arrived.clear();
    this.#owes = false;
  }

  /** Returns the states in this rank's optimizers, which keep ownership of the tensors. */
  #states(): Map<number, ParamStateOf<Remembered>> {
    const states = new Map<number, ParamStateOf<Remembered>>();
    for (const { positions, optimizer } of [this.#own, this.#copy]) {
      if (optimizer === null) continue;
      for (const [i, each] of byParam(optimizer.stateDict()).entries()) states.set(positions[i]!, each);
    }
    return states;
  }

  /** Returns the options of all shards. */
  #options(): object {
    this.#alignOptions();
    return optionsOf((this.local ?? this.whole).stateDict().groups[0]) ?? {};
  }

  #all(): O {
    if (this.#whole === null) {
      this.#whole = this.#make([...this.params]);
      this.#agreed = optionsOf(groupOf(this.#whole)); // the options of the shard are newer
      this.#alignOptions();
    }
    return this.#whole;
  }

  /**
   * Gives all optimizers of this rank the same options: those of `whole` if they have changed since the last call, else
   * those of the shard, which the program may have changed. Optimizers with several groups keep their own.
   */
  #alignOptions(): void {
    const [own, copy, whole] = [this.local, this.#copy.optimizer, this.#whole].map(groupOf);
    const isWholeNewer = !!whole && !(own && isDeepStrictEqual(optionsOf(whole), this.#agreed));
    const options = optionsOf(isWholeNewer ? whole : own);
    for (const group of [own, copy, whole]) if (group) Object.assign(group, options);
    this.#agreed = options && copied(options);
  }

  #fresh(positions: readonly number[]): Held<O> {
    const params = positions.map((position) => this.params[position]!);
    return { positions, optimizer: params.length > 0 ? this.#make(params) : null };
  }

  /** Returns parameters with the states in this rank's optimizers and those received from other ranks. */
  #with(
    positions: readonly number[],
    states: ReadonlyMap<number, ParamStateOf<Remembered>>,
    options: object,
  ): Held<O> {
    const known = [this.#own, this.#copy].find((held) => held.positions.join() === positions.join());
    if (known) return known;
    const fresh = this.#fresh(positions);
    const all = new Map(
      positions.map((position): [number, ParamStateOf<Remembered | LoadableTensor>] => {
        const arrived = this.#arrived.get(position);
        return [position, arrived ? mapTensors(arrived, loadable) : states.get(position)!];
      }),
    );
    if (fresh.optimizer !== null) load(fresh.optimizer, positions, all, options);
    return fresh;
  }

  static {
    const properties = { param_groups: 'whole.groups', groups: 'whole.groups', lr: 'whole.lr' };
    refuseForeign(ZeroRedundancyOptimizer.prototype, 'ZeroRedundancyOptimizer', badOptions, {
      ...{ properties, isSetRefused: true },
    });
  }
}

const sendable = (param: BufferCarrier): BufferCarrier => valueCarrier(asBuffer(param));

/** Returns the options of a group without its parameters; null if there is no group. */
function optionsOf(group: object | null | undefined): object | null {
  if (!group) return null;
  const {
    params: _,
    paramNames: __,
    ...options
  } = group as { readonly params?: unknown; paramNames?: unknown };
  return options;
}

/** Returns the group of an optimizer with one group; null if it has several, or none that can be accessed. */
const groupOf = (optimizer: ShardOptimizer | null): object | null =>
  optimizer?.groups?.length === 1 ? optimizer.groups[0]! : null;

/** Returns a copy whose lists are copies, too. */
const copied = (options: object): object =>
  Object.fromEntries(
    Object.entries(options).map(([name, value]: [string, unknown]) => [
      name,
      Array.isArray(value) ? [...(value as unknown[])] : value,
    ]),
  );

/** Loads the states of the parameters `positions` into their optimizer. */
function load(
  optimizer: ShardOptimizer,
  positions: readonly number[],
  states: ReadonlyMap<number, ParamStateOf<Remembered | LoadableTensor>>,
  options: object,
): void {
  if (typeof optimizer.loadStateDict !== 'function') throw cannotLoad();
  const own = positions.map((position) => states.get(position)!);
  optimizer.loadStateDict(together(own, options) as never);
}

/**
 * Throws if a parameter is in the list twice. The optimizer of one rank would refuse both, while the other ranks go on,
 * or the optimizers of two ranks would update it.
 */
function checkDistinct(params: readonly unknown[]): void {
  const positions = new Map<unknown, number>();
  for (const [position, param] of params.entries()) {
    const first = positions.get(param);
    if (first !== undefined) {
      const got = `the same one at positions ${first} and ${position}`;
      throw invalidArgument('ZeroRedundancyOptimizer: params', 'each parameter once', got);
    }
    positions.set(param, position);
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Throws unless `state` is the state of an optimizer of `count` parameters, in one group. */
function checkState(verb: 'loadStateDict' | 'shardOf', state: unknown, count: number): void {
  const { groups, steps, tensors } = (state ?? {}) as Partial<ConsolidatedState>;
  const isState =
    Array.isArray(groups) &&
    Array.isArray(steps) &&
    isObject(tensors) &&
    Object.values(tensors).every(isObject);
  const positions = isState
    ? Object.keys(tensors).map((name) => Number(name.slice(name.lastIndexOf('.') + 1)))
    : [];
  if (isState && groups.length > 1) throw severalGroups(verb, groups.length);
  if (isState && steps.length === count && positions.every((position) => position < count)) return;
  throw invalidArgument(
    `${verb}: state`,
    `what stateDict() returns of an optimizer of ${count} parameters`,
    isState
      ? `a state of ${Math.max(steps.length, ...positions.map((position) => position + 1))}`
      : shown(state),
  );
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
