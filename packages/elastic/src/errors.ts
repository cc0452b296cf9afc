// The error messages of the training in a job. membership/errors.ts has those of the membership, and diloco/errors.ts
// those of diloco().

import { captureDeeply } from './deep-stack.ts';

/** The codes of an ElasticError. The README lists cause and next step of each. */
export type ElasticErrorCode =
  | 'ERR_ELASTIC_BEHIND'
  | 'ERR_ELASTIC_DISAGREE'
  | 'ERR_ELASTIC_ENDED'
  | 'ERR_ELASTIC_INVALID'
  | 'ERR_ELASTIC_LEFT'
  | 'ERR_ELASTIC_LEFT_OUT'
  | 'ERR_ELASTIC_OVER'
  | 'ERR_ELASTIC_REPLAY'
  | 'ERR_ELASTIC_STATE'
  | 'ERR_ELASTIC_STEP'
  | 'ERR_ELASTIC_STORE'
  | 'ERR_ELASTIC_TOO_FEW'
  | 'ERR_ELASTIC_USE';

const marker = Symbol.for('ringwise.ElasticError');

/** The error type of this package. Branch on `code`; the text is for people. */
export class ElasticError extends Error {
  /** Name of the class. */
  override readonly name = 'ElasticError';
  /** Stable code, which programs may compare. */
  readonly code: ElasticErrorCode;

  constructor(code: ElasticErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    Object.defineProperty(this, marker, { value: true });
    captureDeeply(this, ElasticError);
  }

  /** Returns whether `error` is an ElasticError, also one of another copy of this package. */
  static is(error: unknown): error is ElasticError {
    return typeof error === 'object' && error !== null && marker in error;
  }
}

export function invalidArgument(what: string, expected: string, got: string): ElasticError {
  return new ElasticError('ERR_ELASTIC_INVALID', `${what}: expected ${expected}, got ${got}.`);
}

/** Error for a file of the option log that no rank could write. */
export function logNotWritable(path: string, cause: Error): ElasticError {
  const message = `elastic: log: '${path}' cannot be written: ${cause.message}; expected a file in a folder that exists. Make the folder on each host, because each rank may become rank 0.`;
  return new ElasticError('ERR_ELASTIC_INVALID', message, { cause });
}

/** `fault` is the text that unknownOption() returned. */
export function badOptions(verb: string, fault: string): ElasticError {
  return new ElasticError('ERR_ELASTIC_INVALID', `${verb}: ${fault}.`);
}

interface Range {
  readonly epoch: number;
  readonly start: number;
  readonly end: number;
}

/** Error for a batch that is not the next one of the loader. */
export function wrongBatch(wanted: Range, got: Range | undefined): ElasticError {
  const name = ({ epoch, start, end }: Range) => `positions ${start} to ${end - 1} of epoch ${epoch}`;
  const message = `loader: its next batch has ${got ? name(got) : 'no samples'}; expected ${name(wanted)}. Iterate an elastic loader only by job.steps(), in one loop at a time.`;
  return new ElasticError('ERR_ELASTIC_STEP', message);
}

/** Error for members whose states differ. `difference` says where, and `rank` is the one that differs. */
export function statesDiffer(difference: string, rank: number): ElasticError {
  const message = `transfer: rank ${rank} holds another state than the first member: ${difference}; expected equal states on all members that have trained. Change learning rates, schedules and what is passed as extra in the same way on all ranks.`;
  return new ElasticError('ERR_ELASTIC_STATE', message);
}

export function chunkDamaged(source: number, rank: number): ElasticError {
  const message = `transfer: a part of the state that rank ${source} sent to rank ${rank} does not match its SHA-256; nothing was loaded. Check the memory and the network of both hosts.`;
  return new ElasticError('ERR_ELASTIC_STATE', message);
}

export function transferFailed(why: string, rank: number, cause: unknown): ElasticError {
  const end = why.endsWith('.') ? '' : '.';
  const message = `transfer: rank ${rank} cannot load the state of the training: ${why}${end} Make the same model, optimizer and extra state on all ranks.`;
  return new ElasticError('ERR_ELASTIC_STATE', message, cause === undefined ? undefined : { cause });
}

export function deviceBuffers(name: string): ElasticError {
  const message = `ddp: "${name}" is state that a forward changes, in memory that JavaScript cannot access, so that it cannot be restored when a step runs again; expected running statistics in host memory. Use layers without running statistics, such as GroupNorm or LayerNorm, or train on the host.`;
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}

export function ledgersDiffer(own: string, theirs: string): ElasticError {
  return new ElasticError(
    'ERR_ELASTIC_STATE',
    `the loader has ${own}; expected that of the other members: ${theirs}`,
  );
}

export function modelDiffers(what: string, name: string, isOwn: boolean): ElasticError {
  const where = isOwn ? 'only this member' : 'not this member';
  return new ElasticError('ERR_ELASTIC_STATE', `${what}: ${where} has "${name}"`);
}

/** `difference` names the path, and its value in this process and on the members. */
export function trainsSomethingElse(difference: string): ElasticError {
  const message = `ddp: this process does not have the same training as the members of the job: ${difference}. It has not joined, and they continue. Start it with the same program, data and options as the others.`;
  return new ElasticError('ERR_ELASTIC_STATE', message);
}

/** Error for a call that needs a group, in a process that was started when the training was over. */
export function cameTooLate(verb: string): ElasticError {
  const message = `${verb}: the training was over when this process started, so it has no group; expected a check of job.hasLeft first. End this process with exit code 0.`;
  return new ElasticError('ERR_ELASTIC_OVER', message);
}

export function jobMisused(verb: string, what: string): ElasticError {
  return new ElasticError('ERR_ELASTIC_USE', `${verb}: ${what}.`);
}

/** Error for a step on which the loop did not call run(). */
export function stepNotRun(index: number): ElasticError {
  const message = `steps: step ${index} was not run; expected one \`await step.run(…)\` in the loop, on every rank. Without it, the other ranks wait for this one.`;
  return new ElasticError('ERR_ELASTIC_STEP', message);
}

export function stepNotAwaited(index: number): ElasticError {
  const message = `steps: the loop continued while step ${index} was running; expected it to await run(). Write \`await step.run(…)\`.`;
  return new ElasticError('ERR_ELASTIC_STEP', message);
}

export function stepRunTwice(index: number): ElasticError {
  const message = `run: step ${index} is final already; expected one run() for each step. Put all backwards of a micro-batch into one function.`;
  return new ElasticError('ERR_ELASTIC_STEP', message);
}

/** Error for a call in the function of run() that the job makes by itself. */
export function calledInStep(call: string): ElasticError {
  const message = `run: the function called ${call}; expected forward and backward only, because the job drops the gradients before all micro-batches of a step and updates the parameters after them. Leave the call out.`;
  return new ElasticError('ERR_ELASTIC_STEP', message);
}

export function badLoss(got: string): ElasticError {
  const message = `run: the function returned ${got}; expected the mean loss of its micro-batch as a number. Return loss.item(), or 0.`;
  return new ElasticError('ERR_ELASTIC_STEP', message);
}

export function tooManyBackwards(count: number): ElasticError {
  const message = `run: the function ran ${count} backwards of the model for a micro-batch; expected one. Add the losses up, and run one backward.`;
  return new ElasticError('ERR_ELASTIC_STEP', message);
}

/** Error for a step that other members have made final although this member does not have its averages. */
export function missedStep(own: number, theirs: number): ElasticError {
  const message = `change: the other members have ${theirs} final steps and this one has ${own}, without the averages of the next one. Start this process again, so that it joins and gets their state.`;
  return new ElasticError('ERR_ELASTIC_STATE', message);
}

/** Error for a job that has ended; `failure` says why. `writer` is the id of the member that has written the state. */
export function rescued(failure: Error, steps: number, file: string, writer: string): ElasticError {
  const message = `${failure.message} Member ${writer} writes the state after ${steps} steps to ${file}. Start the job again with the same rescueFolder to continue from there.`;
  return new ElasticError('ERR_ELASTIC_ENDED', message, { cause: failure });
}

export function rescueFailed(failure: Error, file: string, cause: unknown): ElasticError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const message = `${failure.message} The state of the training could not be written to ${file}: ${why}. Start the job again from its last snapshot.`;
  return new ElasticError('ERR_ELASTIC_ENDED', message, { cause: failure });
}

export function rescueMissing(folder: string, own: number, theirs: number): ElasticError {
  const message = `ddp: ${folder} has the state after ${own} steps here, but the first member of the job began with ${theirs}; expected the same folder on all hosts. Put it on a file system that they share.`;
  return new ElasticError('ERR_ELASTIC_STATE', message);
}

export function rescueSharded(): ElasticError {
  const message =
    'ddp: the optimizer state is sharded over the ranks, so that no rank can write all of it to rescueFolder; expected an optimizer with its whole state on each rank. Leave rescueFolder or job.zero() out.';
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}

export function rescueOnDevice(): ElasticError {
  const message =
    'ddp: the model has parameters in memory that JavaScript cannot access, which rescueFolder cannot save; expected parameters in host memory. Leave rescueFolder out, and save snapshots yourself.';
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}

export function sharded(): ElasticError {
  const message =
    'ddp: this ZeroRedundancyOptimizer keeps the state of each parameter on one rank only, so that it is lost with that rank; expected two copies. Make it by job.zero(net.parameters(), (shard) => …).';
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}

export function logDamaged(file: string, line: number): ElasticError {
  const message = `elastic: line ${line} of ${file} is no entry of a membership log; expected JSON with view, step and size. Pass the file that the option log has written.`;
  return new ElasticError('ERR_ELASTIC_REPLAY', message);
}

export function logUnreadable(cause: unknown): ElasticError {
  const message = `elastic: replay: the log cannot be read: ${(cause as Error).message}. Pass the file that the option log has written.`;
  return new ElasticError('ERR_ELASTIC_REPLAY', message, { cause });
}

export function badEntries(got: string): ElasticError {
  const message = `elastic: replay: expected the path of a log, or its entries with view, step and size, got ${got}.`;
  return new ElasticError('ERR_ELASTIC_REPLAY', message);
}

export function mixedLog(view: number): ElasticError {
  const message = `elastic: replay: the log has two entries for view ${view}, with different steps or sizes; expected the views of one job. Pass the log of one job.`;
  return new ElasticError('ERR_ELASTIC_REPLAY', message);
}

export function replayTooSmall(most: number, size: number): ElasticError {
  const what = most === 0 ? 'the log has no views' : `the largest view of the log has ${most} members`;
  const message = `elastic: ${what}, and ${size} processes replay it; expected at least as many processes. Start ${Math.max(most, 1)} of them, by a launcher without --elastic.`;
  return new ElasticError('ERR_ELASTIC_REPLAY', message);
}

/** Error for a model that convertSyncBatchNorm() has converted. */
export function exchangesBatches(): ElasticError {
  const message =
    'ddp: the batch norms of the model exchange over a group that the job does not change with its views; expected batch norms of each rank. Leave out convertSyncBatchNorm(), and pass syncBatchNorm: true.';
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}

export function foreignParams(foreign: number, all: number): ElasticError {
  const message = `ddp: optimizer: ${foreign} of its ${all} parameters are not parameters of the model, so they would not be averaged, and processes that join would not get them; expected parameters of the model. Make the optimizer from the model's own parameters, and pass a model that has all of them.`;
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}

export function leavesApart(hook: string): ElasticError {
  const message = `ddp: after the hook ${hook || 'without a name'}, gradients and therefore parameters may differ between ranks, and a process that joins could get only those of one rank; expected a hook after which all ranks have the same average. For ranks that train separately, use diloco().`;
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}

/** Error of a learner: bytes of the state were damaged in transit. */
export function bytesDamaged(member: string): ElasticError {
  const message = `ddp: a part of the state that member ${member} sent to this process does not match its hash; nothing of it was used. Check the memory and the network of both hosts.`;
  return new ElasticError('ERR_ELASTIC_STATE', message);
}

/** Error of a learner: the received state does not fit its model, optimizer or extra state. */
export function stateUnfit(cause: unknown): ElasticError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const end = why.endsWith('.') ? '' : '.';
  const message = `ddp: this process cannot load the state of the training: ${why}${end} The others have not noticed it. Make the same model, optimizer and extra state as they have.`;
  return new ElasticError('ERR_ELASTIC_STATE', message, { cause });
}

/**
 * The members train faster than a learner applies their steps. The message is a sentence to which the job adds the next
 * step.
 */
export class LearnerBehind extends Error {}

/** Error of a process that joins only as a learner. */
export function behind({ message }: LearnerBehind): ElasticError {
  const next =
    'Use a faster link or a larger batch, or leave out `learn`: then the others stop while this process gets the state.';
  return new ElasticError('ERR_ELASTIC_BEHIND', `${message} ${next}`);
}

/** Text of the warning of a process that joins although it is behind. */
export function joinsWithPause({ message }: LearnerBehind): string {
  return `This process joins although the others have to stop until it has the state. ${message} With a faster link or a larger batch they need not stop; with \`elastic({ learn: true })\` this is an error.`;
}

/** Error for a learner that is too slow. `bytes` of gradients waited for it on one member at step `step`. */
export function tooSlow(bytes: number, step: number, times: number): LearnerBehind {
  const waited = `${Math.round(bytes / 1e6)} MB of gradients waited for it on one member at step ${step}`;
  return new LearnerBehind(
    `ddp: the others train faster than this process applies their steps: ${waited}, ${times} times; expected to catch up, so that they need not wait.`,
  );
}

/** Error for a learner that is still behind at its deadline. */
export function notCaughtUp(joinTimeoutMs: number): LearnerBehind {
  return new LearnerBehind(
    `ddp: this process has not caught up with the training of the others within ${joinTimeoutMs} ms; expected to apply their steps faster than they train, so that they need not wait.`,
  );
}

export function joinCancelled(): ElasticError {
  const message = 'ddp: close() was called before this process had joined; the others have not noticed it.';
  return new ElasticError('ERR_ELASTIC_LEFT', message);
}
