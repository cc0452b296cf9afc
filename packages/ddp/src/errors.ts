// Every error message of this package. Messages that concern several ranks are built from data that all ranks
// have, so that all ranks throw the same error.

import { captureDeeply } from './deep-stack.ts';

/** The codes of a DdpError. The README lists cause and next step of each. */
export type DdpErrorCode =
  | 'ERR_DDP_INVALID'
  | 'ERR_DDP_MISMATCH'
  | 'ERR_DDP_NOT_IN_SYNC'
  | 'ERR_DDP_UNUSED'
  | 'ERR_DDP_READY_TWICE'
  | 'ERR_DDP_UNFINISHED'
  | 'ERR_DDP_GRAPH'
  | 'ERR_DDP_SNAPSHOT'
  | 'ERR_DDP_STATE_LOST'
  | 'ERR_DDP_CLOSED';

const marker = Symbol.for('ringwise.DdpError');

export interface DdpErrorDetails {
  /** Names of the parameters concerned. */
  readonly params?: readonly string[];
  /** Ranks concerned: those that differ from rank 0, or the one that caused the error. */
  readonly ranks?: readonly number[];
  readonly cause?: unknown;
}

/** The error type of this package. Branch on `code`; the text is for people. */
export class DdpError extends Error {
  /** Name of the class. */
  override readonly name = 'DdpError';
  /** Stable code, which programs may compare. */
  readonly code: DdpErrorCode;
  /** Names of the parameters that the error is about; may be empty. */
  readonly params: readonly string[];
  /** Ranks that the error is about; may be empty. */
  readonly ranks: readonly number[];

  constructor(code: DdpErrorCode, message: string, details: DdpErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.params = details.params ?? [];
    this.ranks = details.ranks ?? [];
    Object.defineProperty(this, marker, { value: true });
    captureDeeply(this, DdpError);
  }

  /** Returns whether `error` is a DdpError, also one of another copy of this package. */
  static is(error: unknown): error is DdpError {
    return typeof error === 'object' && error !== null && marker in error;
  }
}

export function invalidArgument(what: string, expected: string, got: string): DdpError {
  return new DdpError('ERR_DDP_INVALID', `${what}: expected ${expected}, got ${got}.`);
}

/** `fault` is the text that unknownOption() returned. */
export function badOptions(verb: string, fault: string): DdpError {
  return new DdpError('ERR_DDP_INVALID', `${verb}: ${fault}.`);
}

export function notParams(verb = 'ddp'): DdpError {
  const expected = 'a model with a Symbol.for("ringwise.gradParams") member, or a list of parameters';
  return invalidArgument(verb, expected, 'an object that is neither');
}

/** `frozen` is the number of parameters that do not train. */
export function noParams(frozen = 0): DdpError {
  const got = frozen === 0 ? 'none' : `${frozen} frozen ones; a model that does not train needs no ddp`;
  return invalidArgument('ddp', 'at least one parameter', got);
}

export function notAParam(position: number): DdpError {
  const expected = 'an object with name, value, grad and onGradReady (GradParam)';
  return invalidArgument(
    `ddp: element ${position} of the list`,
    expected,
    'another one. Pass the model itself',
  );
}

/** An entry of a list whose values are compared. */
export function notAValue(verb: string, position: number): DdpError {
  return invalidArgument(
    `${verb}: element ${position} of the list`,
    'an object with name and value',
    'another one. Pass the model itself',
  );
}

/** `owner` describes the wrapper that has the parameter already. */
export function wrappedAlready(name: string, owner: string): DdpError {
  const message = `ddp: "${name}" is wrapped already, by ${owner}; expected a parameter that no other ddp() averages, because two would change its gradient at the same time. Use that wrapper, or call its close() before.`;
  return new DdpError('ERR_DDP_INVALID', message, { params: [name] });
}

export function sameParamTwice(first: string, second: string): DdpError {
  const message = `ddp: "${first}" and "${second}" are the same parameter; expected each once. A parameter that is used in two places must be listed once.`;
  return new DdpError('ERR_DDP_INVALID', message, { params: [first, second] });
}

/** The error that all ranks throw if one rank refused a parameter. */
export function refused(message: string, params: readonly string[], rank: number, cause: unknown): DdpError {
  return new DdpError('ERR_DDP_INVALID', `${message} (on rank ${rank})`, { params, ranks: [rank], cause });
}

export function duplicateName(name: string): DdpError {
  const message = `ddp: two parameters are named "${name}"; expected names that are unique in the model. A parameter that is used in two places must be listed once.`;
  return new DdpError('ERR_DDP_INVALID', message, { params: [name] });
}

export function unreachableMemory(verb: string, name: string, device: string): DdpError {
  const message = `${verb}: "${name}" is in ${device} memory, which JavaScript cannot read; expected host memory, or an autograd with readValue. Pass copies.`;
  return new DdpError('ERR_DDP_INVALID', message, { params: [name] });
}

export function noBucketMemory(name: string, device: string): DdpError {
  const message = `ddp: "${name}" is in ${device} memory, but its autograd has no allocBucket and bindGrad; expected both, so that gradients can be averaged there. Give its parameters these members, or keep them in host memory.`;
  return new DdpError('ERR_DDP_INVALID', message, { params: [name] });
}

export function cannotDivide(name: string): DdpError {
  const message = `backward: the gradient of "${name}" is in memory that JavaScript cannot access, and its autograd has no divideGrad; expected one for averages with weights. Leave the weight out: in a group of one, and with one backward for each step, it changes nothing but rounding.`;
  return new DdpError('ERR_DDP_INVALID', message, { params: [name] });
}

export function hookNeedsHost(device: string): DdpError {
  const message = `hook: the bucket is in ${device} memory, which JavaScript cannot access; expected host memory where a hook reads or writes \`data\`. Hand the bucket itself to the group's verbs as plainHook and wireHook do, or keep the parameters in host memory.`;
  return new DdpError('ERR_DDP_INVALID', message);
}

/** `got` describes the value passed as the hook, or what the hook has returned. */
export function notAHook(got: string): DdpError {
  const expected = 'a generator function (function*) that yields each operation that it starts';
  return invalidArgument('ddp: hook', expected, got);
}

export function notAWork(got: string): DdpError {
  return invalidArgument(
    'ddp: hook',
    'every value that it yields to be the Work that a verb of the group returns',
    got,
  );
}

export function noMethod(name: string): DdpError {
  const message = `${name}: the model that was passed to ddp() has no ${name}(); expected one where the wrapper's is called. Give the model this method.`;
  return new DdpError('ERR_DDP_INVALID', message);
}

export function noForward(): DdpError {
  return invalidArgument('forward', 'a model with a forward method as the first argument of ddp()', 'none');
}

/** `values[r]` describes rank r's parameter at the position. Equal texts mean equal parameters. */
export function paramsDiffer(
  position: number,
  name: string,
  values: readonly string[],
  verb = 'ddp',
): DdpError {
  const message = `${verb}: parameter lists differ at position ${position}: ${byRank(values)}. Build the same model on all ranks, with parameters in the same order.`;
  return new DdpError('ERR_DDP_MISMATCH', message, { params: [name], ranks: oddRanks(values) });
}

export function plansDiffer(values: readonly string[], verb = 'ddp'): DdpError {
  const message = `${verb}: options or bucket layouts differ between ranks: ${byRank(values)}. Pass the same options on all ranks, and spread the model over devices in the same way.`;
  return new DdpError('ERR_DDP_MISMATCH', message, { ranks: oddRanks(values) });
}

export function notInSync(
  name: string,
  values: readonly string[],
  kind: 'parameter' | 'buffer' = 'parameter',
): DdpError {
  const next =
    kind === 'parameter'
      ? 'Check that every rank takes the same optimizer steps and that nothing but gradients averaged by ddp changes the parameters.'
      : 'Buffers are those of rank 0 after every averaged backward, unless ddp() was told broadcastBuffers: false.';
  const message = `assertInSync: ${kind} "${name}" differs between ranks: ${byRank(values)}. ${next}`;
  return new DdpError('ERR_DDP_NOT_IN_SYNC', message, { params: [name], ranks: oddRanks(values) });
}

export function unusedParams(names: readonly string[], total: number, rank: number): DdpError {
  const message = `backward: ${names.length} of ${total} parameters got no gradient on rank ${rank}: ${list(names)}. Use them in the loss, or pass { unused: 'zero' } to ddp() so that they count as zero, or 'skip' to leave out what no rank uses.`;
  return new DdpError('ERR_DDP_UNUSED', message, { params: names, ranks: [rank] });
}

export function gradMissing(name: string, rank: number): DdpError {
  const message = `backward: "${name}" got no gradient on rank ${rank} and has no memory to receive the average of the other ranks. Give its autograd a bindGrad, or keep its gradient allocated.`;
  return new DdpError('ERR_DDP_UNUSED', message, { params: [name], ranks: [rank] });
}

export function frozenLater(name: string, rank: number): DdpError {
  const message = `backward: "${name}" is frozen on rank ${rank}, but it trained when ddp() was called; expected the same parameters to train. Call close() on the wrapper, and ddp() again.`;
  return new DdpError('ERR_DDP_UNUSED', message, { params: [name], ranks: [rank] });
}

export function trainedLater(name: string, rank: number): DdpError {
  const message = `backward: "${name}" got a gradient on rank ${rank}, but it was frozen when ddp() was called, so that nothing averages it; expected the same parameters to train. Call close() on the wrapper, and ddp() again.`;
  return new DdpError('ERR_DDP_INVALID', message, { params: [name], ranks: [rank] });
}

export function readyTwice(name: string, rank: number): DdpError {
  const message = `backward: the gradient of "${name}" was reported ready twice in one backward on rank ${rank}; expected once, when it is final. Run one backward at a time, await finish() after each if the autograd does not tell when it ends, and do not go on after one that threw.`;
  return new DdpError('ERR_DDP_READY_TWICE', message, { params: [name], ranks: [rank] });
}

export function graphChanged(names: readonly string[], rank: number): DdpError {
  const message = `backward: the graph is not that of the first backward on rank ${rank}: ${list(names)} got another number of gradients; expected the same parameters in every backward, as { staticGraph: true } promises. Leave that option out.`;
  return new DdpError('ERR_DDP_GRAPH', message, { params: names, ranks: [rank] });
}

export function notCapturable(what: string, next: string, rank: number): DdpError {
  const message = `backward: ${what} cannot be part of a step that is being captured on rank ${rank}: it happens in JavaScript, which does not run again when the captured step runs. ${next}`;
  return new DdpError('ERR_DDP_INVALID', message, { ranks: [rank] });
}

export function capturedAverage(rank: number): DdpError {
  const message = `noSync: a step whose capture averages gradients runs inside it on rank ${rank}; captured work cannot be left out. Capture a step without its last backward for it, or call it outside.`;
  return new DdpError('ERR_DDP_INVALID', message, { ranks: [rank] });
}

export function notALoss(): DdpError {
  const got = 'something else. Where it has none, call addWeight(weight) and run its backward';
  return invalidArgument('backward: loss', 'a loss with mul()', got);
}

export function badWeight(got: string): DdpError {
  const next = got === 'undefined' ? '. Without a weight, call loss.backward()' : '';
  return invalidArgument('backward: weight', 'a finite number of at least 0', `${got}${next}`);
}

export function badTotal(got: string): DdpError {
  const expected =
    'the sum of the weights of all ranks in this step, a finite number above 0, the same in each call';
  return invalidArgument('backward: total', expected, got);
}

export function totalDiffers(total: number, sum: number): DdpError {
  const message = `backward: the weights of all ranks add up to ${sum}, but the program has passed the total ${total}; expected the sum of all weights of the step. Leave out the total, or compute it from what all ranks know.`;
  return new DdpError('ERR_DDP_INVALID', message);
}

export function rootWithoutData(): DdpError {
  const message =
    'takePartOnce: rank 0 has no data in a step whose weights have a known total; expected data on rank 0, from which the others take the running statistics. Leave out the total, or give rank 0 samples first.';
  return new DdpError('ERR_DDP_INVALID', message, { ranks: [0] });
}

export function accumulatedWithoutData(weight: number, rank: number): DdpError {
  const message = `takePartOnce: rank ${rank} has gradients of weight ${weight} from backwards inside noSync, which would not count; expected a rank without samples in this step. Call average(), which sends them.`;
  return new DdpError('ERR_DDP_INVALID', message, { ranks: [rank] });
}

/** `readOnly` as in a BufferView. */
export function readOnlyGradient(readOnly: { readonly reason: string; readonly next: string }): DdpError {
  const message = `averageGradients: it must not write a buffer: ${readOnly.reason}; expected gradients. ${readOnly.next}`;
  return new DdpError('ERR_DDP_INVALID', message);
}

export function unfinished(where: string, rank: number): DdpError {
  const message = `${where}: the gradients of the last backward are not averaged yet on rank ${rank}. Call await model.finish() after backward and before optimizer.step(); do not go on after a backward that threw.`;
  return new DdpError('ERR_DDP_UNFINISHED', message, { ranks: [rank] });
}

export function noSyncNotAwaited(where: string, rank: number): DdpError {
  const message = `${where}: noSync() has given a promise on rank ${rank} that is not settled and was not awaited, so gradients would be accumulated and not averaged; expected await model.noSync(…). Await it, or pass a function that is not async.`;
  return new DdpError('ERR_DDP_INVALID', message, { ranks: [rank] });
}

export function notModules(): DdpError {
  return invalidArgument('convertSyncBatchNorm', 'a model with modules()', 'an object without');
}

export function cannotBlock(backend: string): DdpError {
  const message = `convertSyncBatchNorm: the ${backend} backend may not block, but batch norms exchange in the middle of forward; expected one that may, such as host.`;
  return new DdpError('ERR_DDP_INVALID', message);
}

export function joinsBatchNorm(rank: number, verb: 'join' | 'takePartOnce' = 'join'): DdpError {
  const next =
    verb === 'join'
      ? 'or give every rank as many steps and leave out join()'
      : 'or run a forward and backward on every rank in every step, also with an empty batch';
  const message = `${verb}: the model has batch norms over all ranks on rank ${rank}, which need every rank in every forward; expected batch norms of each rank. Leave out convertSyncBatchNorm(), ${next}.`;
  return new DdpError('ERR_DDP_INVALID', message, { ranks: [rank] });
}

export function joinsTwice(rank: number): DdpError {
  const message = `join: another join() of this model runs on rank ${rank}; expected one at a time, because the end of the inner one would end both. Put the loops into one join(), one after the other.`;
  return new DdpError('ERR_DDP_INVALID', message, { ranks: [rank] });
}

export function notConsolidated(rank: number): DdpError {
  const message = `stateDict: rank ${rank} has its own share of the optimizer's state only. Call await consolidateStateDict(${rank}) on all ranks before.`;
  return new DdpError('ERR_DDP_INVALID', message, { ranks: [rank] });
}

export function severalGroups(
  verb: 'consolidateStateDict' | 'loadStateDict' | 'rebind' | 'shardOf' | 'whole',
  count: number,
): DdpError {
  const holder =
    verb === 'loadStateDict' || verb === 'shardOf' ? 'the state' : "the optimizer of a rank's share";
  const why =
    verb === 'whole'
      ? 'all shards get the options of one group'
      : 'the state of several cannot be told apart in the order of all parameters';
  const message = `${verb}: ${holder} has ${count} groups of parameters; expected one, because ${why}. Make one ZeroRedundancyOptimizer for each group.`;
  return new DdpError('ERR_DDP_INVALID', message);
}

/** `problems[r]` is the message of rank r's error; null if it had none. */
export function shardsFailed(verb: string, problems: readonly (string | null)[]): DdpError {
  const ranks = problems.flatMap((problem, rank) => (problem === null ? [] : [rank]));
  const problem = problems[ranks[0]!]!.replace(`${verb}: `, '');
  const message = `${verb}: rank ${ranks[0]} could not read its share of the optimizer's state: ${problem}`;
  return new DdpError('ERR_DDP_INVALID', message, { ranks });
}

/** Error for parameters, named by their positions among `count`, whose optimizer state no rank keeps any more. */
export function stateLost(positions: readonly number[], count: number, copies: number): DdpError {
  const what = `${positions.length} of ${count} parameters, the first of them at position ${positions[0]}`;
  const why = copies === 1 ? 'the rank that kept it was lost' : 'both ranks that kept it were lost together';
  const next = copies === 1 ? ', and pass copies: 2' : '';
  const message = `rebind: the optimizer state of ${what}, is lost, because ${why}; expected a rank that keeps it. Start again from a snapshot${next}.`;
  return new DdpError('ERR_DDP_STATE_LOST', message);
}

export function cannotLoad(): DdpError {
  return invalidArgument(
    'ZeroRedundancyOptimizer',
    'an optimizer with loadStateDict(), to move or load its state',
    'one without',
  );
}

export function stateOutOfReach(): DdpError {
  const message =
    'consolidateStateDict: the optimizer remembers tensors in memory that JavaScript cannot access, and they have no dataSync(); expected one, or tensors in host memory.';
  return new DdpError('ERR_DDP_INVALID', message);
}

export function gradientOutOfReach(): DdpError {
  return invalidArgument(
    'clipShardedGradients: gradient',
    'an array in host memory, or a tensor, whose norm() and div_() work on its device',
    'memory that JavaScript cannot access, without these',
  );
}

export function notSavable(path: string, got: string): DdpError {
  return invalidArgument(`saveSnapshot: ${path}`, 'JSON values, bigints, typed arrays or tensors', got);
}

/** Error for a model, optimizer, loader or generator in place of its state. `method` returns the state. */
export function notItsState(path: string, method: string): DdpError {
  const what = `saveSnapshot: ${path}: expected its state, got an object with ${method}()`;
  return new DdpError('ERR_DDP_INVALID', `${what}. Pass what ${method}() returns.`);
}

export function badSnapshot(file: string, why: string): DdpError {
  const message = `loadSnapshot: ${file} is damaged or no snapshot: ${why}. Use an earlier one.`;
  return new DdpError('ERR_DDP_SNAPSHOT', message);
}

/** Error for ranks that made this call for different files. */
export function snapshotCallsDiffer(verb: string, calls: readonly string[]): DdpError {
  const message = `${verb}: ranks call it for different files: ${byRank(calls)}. It is collective: all ranks make the same calls, with the same file.`;
  return new DdpError('ERR_DDP_SNAPSHOT', message, { ranks: oddRanks(calls) });
}

/** `what` says what other ranks did instead. */
export function notAllCalled(verb: string, what: string, ranks: readonly number[], cause: unknown): DdpError {
  const message = `${verb}: ${what}. It is collective: every rank calls ${verb}, although only rank 0 uses the file; take it out of \`if (rank === 0)\`.`;
  return new DdpError('ERR_DDP_SNAPSHOT', message, { ranks, cause });
}

export function ownStateMissing(path: string, rank: number, other: number): DdpError {
  const message = `saveSnapshot: ${path} is saved for each rank, but only rank ${rank} has passed it and rank ${other} has not; expected the states of all ranks to have it at the same place. Pass the whole state on every rank.`;
  return new DdpError('ERR_DDP_INVALID', message, { ranks: [other] });
}

export function ownStateNotForSize(path: string, before: number, now: number): DdpError {
  const message = `loadSnapshot: ${path} differed between the ${before} ranks that saved it and cannot be loaded on ${now}; expected ${before} ranks. Start ${before} ranks, or leave it out of the snapshot.`;
  return new DdpError('ERR_DDP_SNAPSHOT', message);
}

export function snapshotFailed(verb: string, file: string, why: string, cause: unknown): DdpError {
  return new DdpError('ERR_DDP_SNAPSHOT', `${verb}: rank 0 failed on ${file}: ${why}`, { ranks: [0], cause });
}

/** Error on the ranks on which the option `tensor` has not thrown; `why` is the message of its error on `rank`. */
export function tensorFailed(file: string, rank: number, why: string): DdpError {
  const message = `loadSnapshot: the option tensor threw on rank ${rank} for ${file}: ${why}`;
  return new DdpError('ERR_DDP_SNAPSHOT', message, { ranks: [rank] });
}

export function closed(where: string): DdpError {
  return new DdpError(
    'ERR_DDP_CLOSED',
    `${where}: this model was closed, so its gradients are no longer averaged. Call ddp() again.`,
  );
}

/**
 * Formats values, which are in rank order, as `ranks 0, 1 have X; rank 2 has Y`.
 * @internal
 */
export function byRank(values: readonly string[]): string {
  return [...new Set(values)]
    .map((value) => {
      const ranks = [...values.keys()].filter((rank) => values[rank] === value);
      return ranks.length === 1 ? `rank ${ranks[0]} has ${value}` : `ranks ${ranks.join(', ')} have ${value}`;
    })
    .join('; ');
}

/** Returns the ranks whose value differs from rank 0's. */
function oddRanks(values: readonly string[]): number[] {
  return [...values.keys()].filter((rank) => values[rank] !== values[0]);
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, 10).map((name) => `"${name}"`);
  return names.length > shown.length
    ? `${shown.join(', ')} and ${names.length - shown.length} more`
    : shown.join(', ');
}

export const notAgain = (): DdpError =>
  new DdpError(
    'ERR_DDP_INVALID',
    'dataParallel: this program has called it before, and its threads run the program once. For another model, ' +
      'call ddp(model, { group }) with the group of the first.',
  );

export const otherThread = (): DdpError =>
  new DdpError(
    'ERR_DDP_INVALID',
    'dataParallel: expected the main thread of a program, got a worker thread. In threads that you start yourself, ' +
      'call init() and ddp().',
  );

export const noProgram = (path: string | null): DdpError =>
  invalidArgument('dataParallel: program', 'the file that all threads run', path ?? 'none, as with node -e');

export const endedEarly = (rank: number, code: number): DdpError =>
  new DdpError(
    'ERR_DDP_INVALID',
    `dataParallel: thread ${rank} ended with exit code ${code} before it reached dataParallel(). All threads run the ` +
      'program from its beginning, and each must make this call.',
    { ranks: [rank] },
  );

export const notRows = (expected: number, got: number | null): DdpError =>
  new DdpError(
    'ERR_DDP_INVALID',
    `forward: expected a tensor with one row for each of the ${expected} rows that this thread computes, got ` +
      `${got === null ? 'no tensor' : `${got} rows`}. With other results, use ddp().`,
  );

export const inputNeedsGradient = (): DdpError =>
  new DdpError(
    'ERR_DDP_INVALID',
    'forward: an input requires a gradient; expected inputs without one, because a thread differentiates its own rows ' +
      'only. Put the layers before this model into it, or use ddp().',
  );

export const differentInputs = (rank: number): DdpError =>
  new DdpError(
    'ERR_DDP_MISMATCH',
    `forward: thread ${rank} has another input than thread 0. All threads run the same program, so give data that is ` +
      'drawn at random a seed.',
    { ranks: [rank] },
  );
