// Loads the micro-batches of this rank ahead of the training, in the order of the training. A DataLoader loads them;
// its batchSampler lists the micro-batches of this rank under the assumption that the view does not change and no step
// is repeated. If the view changes or a step is repeated, the batches loaded ahead are dropped, and loading starts
// again from the cursor. Dropped batches do not count as used.
import { DataLoader, type DataLoaderOptions, type Dataset } from '@ringwise/data';
import { checkInteger } from '../check.ts';
import { invalidArgument, wrongBatch } from '../errors.ts';
import {
  type Cursor,
  firstCursor,
  inTrainingOrder,
  type Ledger,
  type MicroBatch,
  ownedBy,
  runTogether,
  type StepPlan,
} from './ledger.ts';

/** The options of a DataLoader that the job accepts. The other ones would change which samples a batch has. */
export type LoadOptions = Pick<
  DataLoaderOptions,
  'prefetch' | 'numWorkers' | 'persistentWorkers' | 'pinMemory' | 'workerSeed' | 'timeoutMs'
>;

export const loadOptionNames = [
  'prefetch',
  'numWorkers',
  'persistentWorkers',
  'pinMemory',
  'workerSeed',
  'timeoutMs',
  'collate',
] as const;

/** The rank and the number of ranks in the view for which batches are loaded. */
interface RankAndSize {
  readonly rank: number;
  readonly size: number;
}

interface Pass<B> {
  readonly batches: AsyncGenerator<B, void, undefined>;
  /** Micro-batches that the DataLoader has read and that the training has not used, in order. */
  readonly asked: MicroBatch[];
}

/** The batches of an elastic job; job.loader() makes it. job.steps() iterates over it, not the program. */
export class ElasticLoader<B = unknown> {
  /** The rules that assign samples to steps and ranks. @internal */
  readonly ledger: Ledger;
  readonly #loader: DataLoader<unknown, B>;
  #cursor: Cursor = firstCursor;
  #assigned: RankAndSize = { rank: 0, size: 1 };
  #pass: Pass<B> | null = null;
  /** Whether all ranks run equally many micro-batches. */
  #isTogether = false;
  /** The micro-batches for the next pass of the DataLoader, and the list to which it adds those that it has read. */
  #next: { readonly from: Iterable<MicroBatch>; readonly asked: MicroBatch[] } = { from: [], asked: [] };

  constructor(dataset: Dataset<never, unknown> | readonly never[], ledger: Ledger, options: LoadOptions) {
    this.ledger = ledger;
    const batchSampler = { [Symbol.iterator]: () => this.#indices() };
    this.#loader = new DataLoader<unknown, B>(
      dataset as Dataset<unknown, B>,
      { ...options, batchSampler } as DataLoaderOptions,
    );
  }

  /** Number of samples of an epoch. */
  get samples(): number {
    return this.ledger.length;
  }

  /** Number of steps of an epoch, at the present number of ranks. */
  get length(): number {
    return this.ledger.stepsOf(this.#assigned.size);
  }

  /**
   * Returns the position where the next step begins, as plain JSON. It follows the last final step, not the last loaded
   * batch.
   */
  state(): Cursor {
    return this.#cursor;
  }

  /** Continues from a position that state() returned. Throws ERR_ELASTIC_INVALID if it does not fit the data set. */
  load(state: Cursor): void {
    this.moveTo(state);
    void this.restart(this.#assigned);
  }

  /** Sets the cursor; the caller restarts the loader. @internal */
  moveTo(state: Cursor): void {
    this.#cursor = checkedCursor(state, this.ledger);
  }

  /** Returns the step at the cursor. @internal */
  plan(): StepPlan {
    return this.ledger.stepAt(this.#cursor, this.#assigned.size);
  }

  /**
   * Makes all ranks run equally many micro-batches: a rank with one less first runs one of another rank. Call it before
   * the first take(). @internal
   */
  runTogether(): void {
    this.#isTogether = true;
  }

  /** Returns the micro-batches that this rank runs in a step, in the order in which take() gives them. @internal */
  owned(plan: StepPlan): readonly MicroBatch[] {
    const { rank, size } = this.#assigned;
    return this.#isTogether ? runTogether(plan, rank, size) : inTrainingOrder(ownedBy(plan, rank, size));
  }

  /** Makes a step final: moves the cursor behind it. @internal */
  finish(plan: StepPlan): void {
    this.#cursor = this.ledger.after(plan);
  }

  /** Drops the batches loaded ahead. The next take() loads from the cursor on, for this rank and size. @internal */
  async restart(assigned: RankAndSize): Promise<void> {
    this.#assigned = assigned;
    const pass = this.#pass;
    this.#pass = null;
    await pass?.batches.return();
  }

  /** Resolves with the batch of a micro-batch, which must be the next one of this rank. @internal */
  async take(wanted: MicroBatch): Promise<B> {
    this.#pass ??= this.#open();
    const { batches, asked } = this.#pass;
    const next = await batches.next();
    const got = asked.shift();
    if (next.done || got === undefined || got.start !== wanted.start || got.epoch !== wanted.epoch)
      throw wrongBatch(wanted, got);
    return next.value;
  }

  /** Ends the workers. Idempotent. */
  async close(): Promise<void> {
    await this.restart(this.#assigned);
    await this.#loader.close();
  }

  #open(): Pass<B> {
    this.#next = { from: this.#ownFrom(this.#cursor), asked: [] };
    return { batches: this.#loader[Symbol.asyncIterator](), asked: this.#next.asked };
  }

  *#indices(): Generator<number[], void, undefined> {
    const { from, asked } = this.#next;
    for (const microBatch of from) {
      asked.push(microBatch);
      yield this.ledger.indicesOf(microBatch);
    }
  }

  /** Yields the micro-batches that this rank runs from the cursor on, without an end. */
  *#ownFrom(cursor: Cursor): Generator<MicroBatch, void, undefined> {
    for (let at = cursor; ; ) {
      const plan = this.ledger.stepAt(at, this.#assigned.size);
      yield* this.owned(plan);
      at = this.ledger.after(plan);
    }
  }
}

function checkedCursor(state: Cursor, { length }: Ledger): Cursor {
  const { epoch, step, position } = state ?? {};
  for (const [name, value] of Object.entries({ epoch, step, position }))
    checkInteger(`load: ${name}`, value, 0);
  if (position >= length)
    throw invalidArgument(
      'load: position',
      `one below ${length}, the length of the data set`,
      String(position),
    );
  return { epoch, step, position };
}
