// One step of the training: the micro-batches of this rank, the averages over all ranks, the vote, and the update. If a
// rank is lost meanwhile and all survivors have the averages, they make the step final. Otherwise they run it again,
// with the lost rank's samples divided among them.
import type { Group } from '@ringwise/collectives';
import { withBatchWeight } from '@ringwise/ddp';
import { checkFunction, checkOptions, shown } from '../check.ts';
import { badLoss, stepRunTwice, tooManyBackwards } from '../errors.ts';
import type { MicroBatch, StepPlan } from '../ledger/ledger.ts';
import { refusing } from './refused-calls.ts';
import { beginMicroBatch } from './streams.ts';
import type { ElasticOptimizer, TrainedParts } from './trained.ts';

/**
 * Computes the loss of a micro-batch and runs its backward. Returns the mean loss of the micro-batch as a number. It
 * must be repeatable: it runs once for each micro-batch, and again if a rank was lost. With batch norms over all ranks
 * it also runs for micro-batches with `counts: false`, whose losses and gradients are ignored.
 */
export type StepFunction<B> = (batch: B, microBatch: MicroBatch) => number | Promise<number>;

/** Options of ElasticStep.run(). */
export interface RunOptions {
  /**
   * Called when all gradients are averaged and the step is final, before the optimizer's step, for example to clip
   * gradients: `() => clipGradNorm(net.parameters(), 1)`.
   */
  readonly beforeUpdate?: () => void;
}

/** The result of a final step, equal on all ranks. */
export interface StepResult {
  /** Mean loss over the samples of the step. */
  readonly mean: number;
  /** Number of samples of the step, over all ranks. */
  readonly samples: number;
  /** Number of ranks that trained on them. */
  readonly ranks: number;
}

/** The loss of a step, over all ranks, from one attempt to run it. */
export interface Attempt {
  readonly mean: number;
  readonly samples: number;
}

/** Runs a step until it is final; implemented by the job. */
export type Runner<B> = (fn: StepFunction<B>, options: RunOptions) => Promise<StepResult>;

/** A step of the training, from job.steps(). */
export class ElasticStep<B = unknown> {
  /** Number of the epoch, from 0 on. */
  readonly epoch: number;
  /** Index in the epoch, from 0. */
  readonly index: number;
  /** Number in the epoch, from 1: index + 1. */
  readonly nth: number;
  /** Number of final steps before this one, over all epochs. */
  readonly number: number;
  readonly #run: Runner<B>;
  #hasRun = false;
  #isRunning = false;

  constructor({ epoch, step }: StepPlan, number: number, run: Runner<B>) {
    this.epoch = epoch;
    this.index = step;
    this.nth = step + 1;
    this.number = number;
    this.#run = run;
  }

  /** Whether run() has been called. @internal */
  get hasRun(): boolean {
    return this.#hasRun;
  }

  /** Whether the promise of run() is not settled yet. @internal */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /**
   * Runs `fn` for each micro-batch of this rank, averages the gradients over all samples of the step, votes, and
   * updates the parameters. Resolves when the step is final. If a rank is lost, `fn` may run again, for other
   * micro-batches. Collective: every rank calls it once for every step. If `fn` throws, rejects with its error, and the
   * job ends on all ranks. Throws ERR_ELASTIC_STEP if it is called twice.
   */
  readonly run = (fn: StepFunction<B>, options: RunOptions = {}): Promise<StepResult> => {
    checkFunction('run', fn, 'a function that computes the loss of a micro-batch');
    checkOptions('run', options, ['beforeUpdate']);
    if (this.#hasRun) throw stepRunTwice(this.number);
    this.#hasRun = true;
    this.#isRunning = true;
    return this.#run(fn, options).finally(() => {
      this.#isRunning = false;
    });
  };
}

/**
 * Computes the averaged gradients of a step and its loss; changes no parameters. Resolves when this rank has both.
 * Collective in `group`.
 */
export async function attempt<B>(
  parts: TrainedParts,
  plan: StepPlan,
  group: Group,
  fn: StepFunction<B>,
): Promise<Attempt> {
  const { model, optimizer, loader, generators } = parts;
  const own = loader.owned(plan);
  // Σ loss · samples and Σ samples, first of this rank, then over all ranks.
  const sums = new Float64Array(2);
  const before = model.averages;
  // Weights count whole micro-batches, so that gradients of whole ones need no factor. The plan gives their total.
  const total = (plan.end - plan.start) / loader.ledger.microBatch;
  optimizer.zeroGrad();
  if (own.length === 0) await model.takePartOnce({ total });
  const outside = generators.map((generator) => generator.state());
  try {
    const refused = [
      { what: 'optimizer', object: optimizer, names: ['step', 'zeroGrad'] },
      { what: 'model', object: model.module as object, names: ['zeroGrad'] },
    ];
    const zeroGrad = optimizer.zeroGrad.bind(optimizer);
    await refusing(refused, () => backwards({ ...parts, zeroGrad }, own, total, fn, sums));
  } finally {
    for (const [i, generator] of generators.entries()) generator.setState(outside[i]!);
  }
  if (model.averages === before) await model.average();
  if (group.supports.sync) group.allReduceSync(sums);
  else await group.allReduce(sums);
  return { mean: sums[0]! / sums[1]!, samples: sums[1]! };
}

/** Runs the micro-batches of this rank. The last backward averages, unless its micro-batch is a short one. */
async function backwards<B>(
  { model, zeroGrad, loader, generators }: TrainedParts & Pick<ElasticOptimizer, 'zeroGrad'>,
  own: readonly MicroBatch[],
  total: number,
  fn: StepFunction<B>,
  sums: Float64Array,
): Promise<void> {
  const { microBatch: whole, seed } = loader.ledger;
  const before = model.averages;
  for (const [i, microBatch] of own.entries()) {
    const samples = samplesOf(microBatch);
    const isLast = i === own.length - 1;
    const batch = (await loader.take(microBatch)) as B;
    beginMicroBatch(generators, seed, microBatch);
    if (isLast)
      model.addWeight(
        own.reduce((sum, each) => sum + samplesOf(each) / whole, 0),
        { total },
      );
    const averages = isLast && samples === whole;
    const run = () => (averages ? fn(batch, microBatch) : model.noSync(() => fn(batch, microBatch)));
    const loss = await (samples === whole
      ? run()
      : withBatchWeight(model.module as object, samples / whole, run));
    if (averages) await model.finish();
    if (typeof loss !== 'number') throw badLoss(shown(loss));
    if (model.averages > before + 1) throw tooManyBackwards(model.averages - before);
    if (samples === 0) {
      zeroGrad();
      continue;
    }
    if (samples !== whole) model.divideAccumulated(whole / samples);
    sums[0]! += loss * samples;
    sums[1]! += samples;
  }
}

/** Returns the number of samples of a micro-batch that count. */
const samplesOf = ({ start, end, counts }: MicroBatch): number => (counts === false ? 0 : end - start);
