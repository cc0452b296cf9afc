// The state of the training: the model with its optimizer, the position in the data, and the states that the program
// has named. Saves and loads the state for joining processes, applies a final step to it, and restores it if a step is
// not final.
import { type BufferCarrier, type BufferView, byteSize, elementsOf, type Group } from '@ringwise/collectives';
import {
  buffersSymbol,
  type DistributedDataParallel,
  frozenParamsSymbol,
  type GradParamSource,
  gradParamsSymbol,
  packState,
  type RebindOptions,
  type Revive,
  type SharedHookState,
  valueCarrier,
} from '@ringwise/ddp';
import { deviceBuffers, ledgersDiffer, modelDiffers } from '../errors.ts';
import type { ElasticLoader } from '../ledger/elastic-loader.ts';
import type { Cursor } from '../ledger/ledger.ts';
import { type Stateful, setStateOf, stateOf } from './stateful.ts';
import type { StreamGenerator } from './streams.ts';

/** Bytes of a huge page. */
const hugePage = 2 << 20;

/** The members of an optimizer that a job uses, such as one of @ringwise/tensor. */
export interface ElasticOptimizer {
  /** Changes the parameters by their gradients. */
  readonly step: () => unknown;
  /** Drops the gradients of all parameters. */
  readonly zeroGrad: () => void;
  /** Returns the state that a joining member needs. */
  readonly stateDict: () => unknown;
  /** Copies a state that stateDict() returned. */
  readonly loadStateDict: (state: never) => unknown;
}

/** The members of a ZeroRedundancyOptimizer that a job uses; job.zero() makes one. */
export interface ElasticShards {
  /** An optimizer of all parameters that never steps, with the options of all shards. */
  readonly whole: { readonly stateDict: () => unknown; readonly loadStateDict?: (state: never) => unknown };
  /** All parameters. */
  readonly params: readonly unknown[];
  /** Drops the gradients of all parameters. */
  readonly zeroGrad: () => void;
  /** Changes the parameters of this rank's shard by their gradients. Sends nothing. */
  readonly update: () => void;
  /** Sends the values that this rank has updated to all others. Collective. */
  readonly exchange: () => Promise<void>;
  /**
   * Repeats an exchange of values that the loss of a rank has interrupted. `joined` lists the ranks without state.
   * Collective.
   */
  readonly repair: (group: Group, joined: readonly number[]) => Promise<unknown>;
  /** Assigns the parameters to the ranks of `group`, and moves their state. Collective. */
  readonly rebind: (group: Group, options?: RebindOptions) => Promise<void>;
}

/** The members of a GradScaler that a job uses. */
export interface ElasticScaler {
  /** Divides the gradients of the optimizer by the scale. */
  readonly unscale_: (optimizer: never) => void;
  /** Steps the optimizer if its gradients are finite. */
  readonly step: (optimizer: never) => unknown;
  /** Sets the scale of the next step. */
  readonly update: () => void;
  /** Returns the state that a joining member needs. */
  readonly stateDict: () => unknown;
  /** Copies a state that stateDict() returned. */
  readonly loadStateDict: (state: never) => unknown;
}

/** The objects whose states make up the state of the training. */
export interface TrainedParts {
  readonly source: GradParamSource;
  readonly model: DistributedDataParallel<GradParamSource>;
  readonly optimizer: ElasticOptimizer | ElasticShards;
  readonly loader: ElasticLoader;
  readonly scaler: ElasticScaler | null;
  readonly generators: readonly StreamGenerator[];
  readonly extra: Readonly<Record<string, Stateful>>;
  readonly revive: Revive | undefined;
  /** State of the communication hook. */
  readonly hook: SharedHookState | null;
}

/** Observes each step, on members that send updates to a learner. */
export interface StepObserver {
  /** Called before the first forward of a step, also of one that runs again. */
  readonly beforeStep: () => void;
  /** Called when the step is final and the gradients are those that the optimizer is about to use. */
  readonly beforeUpdate: () => void;
  /** Called after the update. `isTaken` is false if a GradScaler has skipped the step. */
  readonly afterUpdate: (isTaken: boolean) => void;
}

interface Memory {
  readonly name: string;
  readonly value: BufferView;
  readonly shape?: readonly number[];
}

/** Returns the parameters of a model, trainable or frozen, and its buffers. */
export const memoriesOf = (source: GradParamSource): readonly Memory[] => [
  ...source[gradParamsSymbol](),
  ...(source[frozenParamsSymbol]?.() ?? []),
  ...(source[buffersSymbol]?.() ?? []),
];

/** The state that transfer() moves. */
interface Saved {
  readonly finalSteps: number;
  readonly cursor: Cursor;
  readonly ledger: string;
  readonly model: Readonly<Record<string, BufferCarrier>>;
  readonly optimizer: unknown;
  readonly scaler: unknown;
  readonly generators: readonly unknown[];
  readonly extra: Readonly<Record<string, unknown>>;
  readonly hook: unknown;
}

export class Trained {
  readonly parts: TrainedParts;
  /** Number of steps that are final and whose averages are applied. */
  finalSteps = 0;
  observer: StepObserver | null = null;
  readonly #memories: readonly Memory[];
  readonly #buffers: readonly Memory[];
  /** Values of the state buffers at the beginning of the step. */
  #before: readonly ArrayBufferView[] = [];
  /** A copy of the hook's state at the beginning of the step. */
  #hookBefore: unknown = null;

  /** Throws ERR_ELASTIC_INVALID if JavaScript cannot access the memory of running statistics. */
  constructor(parts: TrainedParts) {
    this.parts = parts;
    const { source } = parts;
    this.#buffers = [...(source[buffersSymbol]?.() ?? [])];
    this.#memories = memoriesOf(source);
    const far = this.#buffers.find(({ value }) => value.host === null);
    if (far !== undefined) throw deviceBuffers(far.name);
  }

  /** Whether JavaScript cannot access the memory of some parameters, so that save() leaves them out. */
  get isFar(): boolean {
    return this.#memories.some(({ value }) => value.host === null);
  }

  /** Copies the state that a forward or the averages may change, before the first forward of a step. */
  begin(): void {
    this.observer?.beforeStep();
    this.#before = this.#buffers.map(({ value }) => elementsOf(value).slice());
    if (this.parts.hook !== null) this.#hookBefore = structuredClone(this.parts.hook.save());
  }

  /** Restores the state that begin() has copied, because the step is not final. */
  undo(): void {
    for (const [i, before] of this.#before.entries()) {
      const { value } = this.#buffers[i]!;
      elementsOf(value).set(before as never);
      value.written?.();
    }
    this.parts.hook?.load(this.#hookBefore as never);
  }

  /** The optimizer, if its state is sharded over the ranks; else null. */
  get shards(): ElasticShards | null {
    const { optimizer } = this.parts;
    return 'whole' in optimizer ? optimizer : null;
  }

  /** The optimizer, if each member has its whole state; null if the state is sharded over the ranks. */
  get wholeOptimizer(): ElasticOptimizer | null {
    const { optimizer } = this.parts;
    return 'whole' in optimizer ? null : optimizer;
  }

  /**
   * Applies the averages of a final step. `beforeUpdate` sees them unscaled. Sends nothing: if the optimizer is sharded
   * over the ranks, call exchange() afterwards.
   */
  apply(beforeUpdate: (() => void) | undefined): void {
    const { optimizer, scaler } = this.parts;
    const stepped =
      'whole' in optimizer ? { params: optimizer.params, step: () => optimizer.update() } : optimizer;
    let isTaken = true;
    scaler?.unscale_(stepped as never);
    beforeUpdate?.();
    this.observer?.beforeUpdate();
    if (scaler === null) stepped.step();
    else {
      isTaken = scaler.step(stepped as never) !== false;
      scaler.update();
    }
    this.observer?.afterUpdate(isTaken);
    this.finalSteps++;
  }

  /** Total bytes of the gradient buckets for parameters in host memory. Each bucket begins at a huge page. */
  get bucketBytes(): number {
    return this.parts.model.plan
      .filter(({ device }) => device.kind === 'cpu')
      .reduce((sum, { count, dtype }) => sum + Math.ceil((count * byteSize(dtype)) / hugePage) * hugePage, 0);
  }

  /** Total bytes of the trainable parameters. */
  get parameterBytes(): number {
    const params = [...this.parts.source[gradParamsSymbol]()];
    return params.reduce((sum, { value }) => sum + value.count * byteSize(value.dtype), 0);
  }

  /**
   * Whether a learner can apply the steps of this member: JavaScript can access all of the state, gradients can be
   * written to the memory that the optimizer reads, and each member has the whole state of the optimizer.
   */
  get canBeFollowed(): boolean {
    if (this.wholeOptimizer === null) return false;
    if (this.#memories.some(({ value }) => value.host === null)) return false;
    if ([...this.parts.source[gradParamsSymbol]()].some(({ bindGrad }) => bindGrad === undefined))
      return false;
    return packState(this.save()).arrays.every(({ read }) => ArrayBuffer.isView(read()));
  }

  /** Sends the values that apply() has updated on this rank, and receives the others. Collective. */
  async exchange(): Promise<void> {
    await this.shards?.exchange();
  }

  /** Moves the optimizer state of leaving members to others, if it is sharded over the ranks. Collective. */
  async handOver(group: Group, isLeaving: boolean): Promise<void> {
    if (this.shards === null) return;
    const wishes = new Uint8Array(group.size);
    await group.allGather(Uint8Array.of(Number(isLeaving)), wishes);
    const leaving = [...wishes.keys()].filter((rank) => wishes[rank] === 1);
    if (leaving.length > 0 && leaving.length < group.size) await this.shards.rebind(group, { leaving });
  }

  /** Returns the state. Its arrays and tensors are the training's own memory, not copies. */
  save(): unknown {
    const { optimizer, loader, scaler, generators, extra, hook } = this.parts;
    const near = this.#memories.filter(({ value }) => value.host !== null);
    const saved: Saved = {
      finalSteps: this.finalSteps,
      cursor: loader.state(),
      ledger: loader.ledger.description,
      model: Object.fromEntries(near.map(({ name, value }) => [name, valueCarrier(value)])),
      optimizer: wholeOf(optimizer).stateDict(),
      scaler: scaler?.stateDict() ?? null,
      generators: generators.map((generator) => generator.state()),
      extra: Object.fromEntries(Object.entries(extra).map(([name, each]) => [name, stateOf(each)])),
      hook: hook?.save() ?? null,
    };
    return saved;
  }

  /**
   * Loads a state. Throws if it does not fit, before parameters are changed. `unchanged` names members of the state
   * that this process already has.
   */
  load(value: unknown, unchanged: ReadonlySet<string> = new Set()): void {
    const saved = value as Omit<Saved, 'model'> & {
      readonly model: Readonly<Record<string, { readonly data: ArrayLike<number> }>>;
    };
    const { optimizer, loader, scaler, generators, extra, hook } = this.parts;
    if (saved.ledger !== loader.ledger.description)
      throw ledgersDiffer(loader.ledger.description, saved.ledger);
    const near = this.#memories.filter(({ value: own }) => own.host !== null);
    checkNames(
      'parameters and buffers',
      near.map(({ name }) => name),
      Object.keys(saved.model),
    );
    checkNames('members of extra', Object.keys(extra), Object.keys(saved.extra));
    checkNames('generators', Object.keys(generators), Object.keys(saved.generators));
    checkNames('states of the hook', hook ? ['hook'] : [], saved.hook === null ? [] : ['hook']);
    checkNames('scalers', scaler ? ['scaler'] : [], saved.scaler === null ? [] : ['scaler']);
    for (const { name, value: own } of unchanged.has('model') ? [] : near) {
      elementsOf(own).set(saved.model[name]!.data as never);
      own.written?.();
    }
    if (!unchanged.has('optimizer')) wholeOf(optimizer).loadStateDict?.(saved.optimizer as never);
    scaler?.loadStateDict(saved.scaler as never);
    for (const [i, generator] of generators.entries()) generator.setState(saved.generators[i] as never);
    for (const [name, each] of Object.entries(extra)) setStateOf(each, saved.extra[name]);
    hook?.load(saved.hook as never);
    loader.moveTo(saved.cursor);
    this.finalSteps = saved.finalSteps;
  }

  /** Broadcasts parameters in device memory from `root`; save() includes all others. Collective. */
  async broadcastFar(group: Group, root: number): Promise<void> {
    const far = this.#memories.filter(({ value }) => value.host === null);
    if (far.length > 0)
      await group.broadcast(
        far.map(({ value }) => valueCarrier(value)),
        { root },
      );
  }
}

/** Returns the object whose stateDict() saves the optimizer; if its state is sharded, only its options are saved. */
const wholeOf = (optimizer: ElasticOptimizer | ElasticShards) =>
  'whole' in optimizer ? optimizer.whole : optimizer;

function checkNames(what: string, own: readonly string[], theirs: readonly string[]): void {
  const odd = own.find((name) => !theirs.includes(name)) ?? theirs.find((name) => !own.includes(name));
  if (odd !== undefined) throw modelDiffers(what, odd, own.includes(odd));
}
