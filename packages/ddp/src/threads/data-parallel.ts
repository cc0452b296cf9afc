// Data-parallel training on threads of one process, in one line: the rest of a program for one process stays as it is.
import { availableParallelism } from 'node:os';
import { type Group, refusingMembers } from '@ringwise/collectives';
import { checkInteger, checkOptions } from '../check.ts';
import { badOptions } from '../errors.ts';
import { type DistributedDataParallel, ddp } from '../wrapper/ddp.ts';
import type { MethodOf } from '../wrapper/delegate.ts';
import { type GradParamSource, paramsOf } from '../wrapper/grad-param.ts';
import { gatherCrew } from './crew.ts';
import { inShares } from './rows.ts';

/** Options of dataParallel(). */
export interface DataParallelOptions {
  /** How many threads compute, the main thread included. Default: the number of cores. */
  readonly threads?: number;
  /** The file that all threads run, as `import.meta.url`. Default: the program that node was started with. */
  readonly program?: string | URL;
}

/** The wrapper that dataParallel() returns. `M` is the type of the model. */
export class DataParallel<M = unknown> {
  /** The model itself: this thread's copy, equal to those of the other threads after each step. */
  readonly module: M;
  /** The group of the threads. Rank 0 is the main thread. */
  readonly group: Group;
  /**
   * Calls the model's forward on this thread's rows of each tensor. Returns the rows of all threads, so that loss and
   * labels are those of the whole batch. Blocks. Throws ERR_DDP_MISMATCH if the threads have different inputs, and
   * ERR_DDP_INVALID if an input requires a gradient, which only parameters get.
   */
  readonly forward: MethodOf<M, 'forward'>;
  readonly #wrapped: DistributedDataParallel<M>;
  readonly #end: () => Promise<unknown>;

  /** Use dataParallel(). @internal */
  constructor(wrapped: DistributedDataParallel<M>, end: () => Promise<unknown>) {
    const { module, group } = wrapped;
    this.module = module;
    this.group = group;
    this.#wrapped = wrapped;
    this.#end = end;
    const forward = wrapped.forward as unknown as (...args: readonly unknown[]) => unknown;
    this.forward = ((...args: unknown[]) =>
      inShares(group, args, (own) => forward(...own))) as unknown as MethodOf<M, 'forward'>;
  }

  /**
   * Stops averaging. Collective. Resolves when all threads have called it. Then the main thread terminates the other
   * threads at any point of their program, and continues alone.
   */
  async close(): Promise<void> {
    this.#wrapped.close();
    await this.group.close();
    await this.#end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const notAwaited = refusingMembers(
  { what: 'model', call: 'dataParallel()', names: ['forward', 'module', 'group'] },
  DataParallel.prototype,
  badOptions,
);

/**
 * Makes a model data-parallel on threads of this process, as nn.DataParallel does. Starts threads that run the same
 * program from its beginning, each with its own copy of the model. `forward` then divides a batch among the threads and
 * returns all results, and backward gives every thread the gradients of the whole batch. Loader, loss and optimizer
 * stay unchanged. The other threads' output is discarded; guard code that must run only once by `model.group.rank ===
 * 0`.
 *
 * Collective: every thread calls it once, at the same point of the program. With ddp() on processes instead, each
 * process loads and keeps only its own data, and several hosts can take part.
 *
 * @example
 * ```ts
 * import { dataParallel } from '@ringwise/ddp';
 *
 * const model = await dataParallel(net); // the one line
 * const loss = crossEntropy(model.forward(x), y); // the whole batch, computed by all threads
 * loss.backward();
 * optimizer.step();
 * await model.close();
 * ```
 */
export function dataParallel<M extends GradParamSource>(
  model: M,
  options: DataParallelOptions = {},
): Promise<DataParallel<M>> {
  return notAwaited(start(model, options));
}

async function start<M extends GradParamSource>(
  model: M,
  options: DataParallelOptions,
): Promise<DataParallel<M>> {
  checkOptions('dataParallel', options, { known: ['threads', 'program'] });
  const { threads = availableParallelism(), program } = options;
  checkInteger('dataParallel: threads', threads, 1, 1024);
  paramsOf(model, 'dataParallel'); // throws for what is no model, before any thread is started
  const { group, end } = await gatherCrew(threads, program);
  // As in a program of one process, parameters that a backward does not use get no gradient.
  return new DataParallel(await ddp(model, { group, unused: 'skip' }), end);
}
