// Options of elastic() and of job.ddp(), checked before anything is sent.
import {
  type DdpOptions,
  frozenParamsSymbol,
  type GradParamSource,
  gradParamsSymbol,
  hasSyncBatchNorm,
  type ModuleTree,
  type Revive,
} from '@ringwise/ddp';
import { checkFunction, checkOptions, shown } from '../check.ts';
import { exchangesBatches, foreignParams, invalidArgument, leavesApart, sharded } from '../errors.ts';
import { ElasticLoader } from '../ledger/elastic-loader.ts';
import type { MembershipOptions } from '../membership/options.ts';
import type { LogEntry, LogTarget } from './log.ts';
import { checkExtra, checkStateful, type Stateful } from './stateful.ts';
import type { StreamGenerator } from './streams.ts';
import type { ElasticOptimizer, ElasticScaler, ElasticShards } from './trained.ts';

/** Options of elastic(): the options of joinMembership(), and further ones for the job. */
export interface ElasticOptions extends MembershipOptions {
  /**
   * Membership log: a file to which rank 0 of each view appends a line of JSON, or a function. A new job replaces the
   * file. Default: none.
   */
  readonly log?: LogTarget;
  /**
   * Membership log of a job to repeat without its losses: the file that `log` has written, or its entries. init() then
   * connects the processes, in place of joinMembership(). The job ends with the bits of the logged one. Default: none.
   */
  readonly replay?: string | readonly LogEntry[];
  /**
   * Folder for the state of the training if the job ends because its members cannot go on, for example when the host of
   * the store is lost and no majority is left: one of them writes `step-N.snapshot`. A new job with this option
   * begins from the file with the most steps; to train from the beginning, remove the files. All hosts must share the
   * folder, and the parameters must be in host memory. Default: none.
   */
  readonly rescueFolder?: string;
  /**
   * Whether a process that joins receives the state while the others continue training, and is admitted only when it
   * has applied all their steps. With false, the others pause until it has the state; they always do so with an
   * optimizer of `job.zero()`, because no single member has its whole state. With true, a process that cannot keep up
   * rejects with ERR_ELASTIC_BEHIND. Default: it learns if members train, the parameters have 4 MiB or more, and all
   * state is in host memory; if it cannot keep up, it warns, and the others pause for it.
   */
  readonly learn?: boolean;
  /**
   * Signal at which this process leaves after the step in flight; a second signal has its usual effect. null: none.
   * Default: 'SIGTERM'.
   */
  readonly leaveOn?: NodeJS.Signals | null;
}

/** Options of job.ddp(). */
export interface ElasticDdpOptions
  extends Partial<
    Pick<DdpOptions, 'bucketBytes' | 'firstBucketBytes' | 'unused' | 'broadcastBuffers' | 'hook'>
  > {
  /** Optimizer of the model's parameters, also one of job.zero(). The job calls its zeroGrad() and step(). */
  readonly optimizer: ElasticOptimizer | ElasticShards;
  /** The loader that job.loader() made. */
  readonly loader: ElasticLoader;
  /** Scaler of the loss. The program calls scale(); the job calls unscale_(), step() and update(). Default: none. */
  readonly scaler?: ElasticScaler;
  /**
   * Generators from which the model draws, such as the one that manualSeed() returns. Inside a micro-batch each has its
   * own stream, which depends on the loader's seed, the step and the micro-batch, so that a step that runs again draws
   * the same numbers, also on another rank.
   */
  readonly generators?: readonly StreamGenerator[];
  /** Other objects with state of the training, by name, such as a schedule of the learning rate. Default: none. */
  readonly extra?: Readonly<Record<string, Stateful>>;
  /** Returns the replacement of a tensor in states of `extra`. Default: its memory, dtype and shape. */
  readonly tensor?: Revive;
  /**
   * Whether batch norms normalise the concurrent micro-batches of all ranks together, as after convertSyncBatchNorm().
   * Needs a group that can block, and running statistics in host memory. Default false.
   */
  readonly syncBatchNorm?: boolean;
}

const ddpNames: readonly (keyof ElasticDdpOptions)[] = [
  ...(['optimizer', 'loader', 'scaler', 'generators', 'extra', 'tensor'] as const),
  ...(['bucketBytes', 'firstBucketBytes', 'unused', 'broadcastBuffers'] as const),
  ...(['hook', 'syncBatchNorm'] as const),
];

export function checkDdpOptions(source: GradParamSource, options: ElasticDdpOptions): void {
  if (typeof source !== 'object' || source === null)
    throw invalidArgument('ddp', 'a model with parameters', shown(source));
  checkOptions('ddp', options ?? {}, ddpNames);
  if (hasSyncBatchNorm(source as Partial<ModuleTree>)) throw exchangesBatches();
  const { optimizer, loader, scaler, generators = [], extra, tensor } = options ?? {};
  const { hook, syncBatchNorm } = options ?? {};
  if (hook?.leavesRanksApart) throw leavesApart(hook.name);
  if (syncBatchNorm !== undefined && typeof syncBatchNorm !== 'boolean')
    throw invalidArgument('ddp: syncBatchNorm', 'true or false', shown(syncBatchNorm));
  const { step, zeroGrad, stateDict, loadStateDict } = (optimizer ?? {}) as Partial<ElasticOptimizer>;
  const isSharded =
    typeof optimizer === 'object' && optimizer !== null && 'consolidateStateDict' in optimizer;
  if (isSharded && (optimizer as { readonly copies?: number }).copies !== 2) throw sharded();
  if (
    !isSharded &&
    [step, zeroGrad, stateDict, loadStateDict].some((member) => typeof member !== 'function')
  ) {
    const expected = 'an optimizer with step(), zeroGrad(), stateDict() and loadStateDict()';
    throw invalidArgument('ddp: optimizer', expected, shown(optimizer));
  }
  checkOwnParams(source, (optimizer as { readonly params?: unknown }).params);
  if (!(loader instanceof ElasticLoader))
    throw invalidArgument('ddp: loader', 'what job.loader() returns', shown(loader));
  if (scaler !== undefined) checkStateful('ddp: scaler', scaler);
  if (!Array.isArray(generators)) throw invalidArgument('ddp: generators', 'a list', shown(generators));
  for (const [i, generator] of generators.entries()) checkStateful(`ddp: generators[${i}]`, generator);
  checkExtra(extra);
  if (tensor !== undefined) checkFunction('ddp: tensor', tensor);
}

/**
 * Throws ERR_ELASTIC_INVALID if an optimizer that lists its `params` has some that the model does not list: they would
 * be neither averaged nor sent to processes that join. Does not check an optimizer whose `params` are of another kind
 * than the model's parameters, such as groups.
 */
function checkOwnParams(source: GradParamSource, params: unknown): void {
  // ddp() refuses a model that offers no parameters.
  if (!Array.isArray(params) || typeof source[gradParamsSymbol] !== 'function') return;
  const offered = [...source[gradParamsSymbol](), ...(source[frozenParamsSymbol]?.() ?? [])];
  const keys = new Set<unknown>(offered.map(({ key }) => key));
  const kinds = new Set(offered.map(({ key }) => key?.constructor));
  if (kinds.has(undefined) || !params.every((param: object) => kinds.has(param?.constructor))) return;
  const foreign = params.filter((param) => !keys.has(param)).length;
  if (foreign > 0) throw foreignParams(foreign, params.length);
}
