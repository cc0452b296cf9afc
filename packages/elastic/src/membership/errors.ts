// The error messages of the membership of a job.
import { ElasticError } from '../errors.ts';
import type { View } from './protocol/view.ts';

/** `fault` is the text that unknownOption() returned. */
export const badOptions = (verb: string, fault: string) =>
  new ElasticError('ERR_ELASTIC_INVALID', `${verb}: ${fault}.`);

export const badOption = (verb: string, name: string, expected: string, got: unknown) =>
  new ElasticError(
    'ERR_ELASTIC_INVALID',
    `${verb}: option '${name}': expected ${expected}, got ${shown(got)}.`,
  );

export const badVariable = (name: string, expected: string, got: string) =>
  new ElasticError('ERR_ELASTIC_INVALID', `joinMembership: ${name} is '${got}'; expected ${expected}.`);

export const badAgreed = (got: unknown) =>
  new ElasticError(
    'ERR_ELASTIC_INVALID',
    `vote: 'agreed': expected a list of safe integers, got ${shown(got)}.`,
  );

export const noStore = () =>
  new ElasticError(
    'ERR_ELASTIC_STORE',
    'joinMembership: there is no store that outlives a lost member; expected one that a launcher serves, or the option store. ' +
      'Start the program with `npx ringwise run --elastic`, or serve a store in a process of its own and pass a client of it.',
  );

/** Error under torchrun, whose agent stops all workers when one fails, and whose store does not know single slots. */
export const endedByTorchrun = () =>
  new ElasticError(
    'ERR_ELASTIC_USE',
    'joinMembership: torchrun stops all ranks when one is lost, so none could continue. Start the program with `npx ringwise run --elastic`, which has the flags of torchrun, or serve a store in a process of its own and pass a client of it.',
  );

export const endedByLauncher =
  'joinMembership: this launcher stops all ranks when one is lost, because it was started without --elastic. Start the program with `npx ringwise run --elastic`.';

export const storeFailed = (verb: string, reason: string, cause: unknown) =>
  new ElasticError(
    'ERR_ELASTIC_STORE',
    `${verb}: the store failed (${reason}). Without it the members cannot agree on a view: end this process, and start the job again from its last snapshot.`,
    cause === undefined ? undefined : { cause },
  );

export const sizeUnknown = () =>
  new ElasticError(
    'ERR_ELASTIC_INVALID',
    'joinMembership: the number of founding members is unknown; expected the option size, or WORLD_SIZE from a launcher.',
  );

export const tooFew = (present: number, min: number, joinTimeoutMs: number) =>
  new ElasticError(
    'ERR_ELASTIC_TOO_FEW',
    `joinMembership: ${present} of at least ${min} processes arrived within ${joinTimeoutMs} ms. Do all use the same store and run id?`,
  );

export const notAdmitted = (id: string, members: number, joinTimeoutMs: number) =>
  new ElasticError(
    'ERR_ELASTIC_TOO_FEW',
    `joinMembership: member ${id} was not admitted by the ${members} members of the job within ${joinTimeoutMs} ms. They admit others when a vote ends: do they vote?`,
  );

export const leftOut = (id: string, view: number, members: number) =>
  new ElasticError(
    'ERR_ELASTIC_LEFT_OUT',
    `change: member ${id} is not in view ${view}; its ${members} members considered it lost, or could not reach it. End this process; it can join again as a new member.`,
  );

export const hasLeft = (id: string) =>
  new ElasticError(
    'ERR_ELASTIC_LEFT',
    `change: member ${id} has left the job. Call close() after its last vote.`,
  );

/**
 * Error for a job whose last view decides about the step in flight. The code is ERR_ELASTIC_OVER if the training was
 * over before this process had its state.
 */
export class JobEndedError extends ElasticError {
  readonly view: View;

  /** `cause` is the failure of the previous store, if this member has moved to another one. */
  constructor(verb: string, view: View, cause?: unknown) {
    const next = view.isOver ? ' This process is not needed. A new job needs another run id.' : '';
    const message = `${verb}: the job ended with view ${view.number}: ${view.ended}.${next}`;
    super(
      view.isOver ? 'ERR_ELASTIC_OVER' : 'ERR_ELASTIC_ENDED',
      message,
      cause === undefined ? undefined : { cause },
    );
    this.view = view;
  }
}

/**
 * Returns whether the error means that the training was over when the process was started, so that it is not needed.
 */
export const isOver = (error: unknown): error is JobEndedError =>
  error instanceof JobEndedError && error.view.isOver;

export const misused = (verb: string, what: string) =>
  new ElasticError('ERR_ELASTIC_USE', `${verb}: ${what}.`);

/** `values` are the agreed numbers of each member, by rank; `at` is the index of the first number that differs. */
export const disagree = (view: number, at: number, values: readonly (readonly number[])[]) => {
  const first = values[0]![at]!;
  const other = values.findIndex((row) => row[at] !== first);
  return new ElasticError(
    'ERR_ELASTIC_DISAGREE',
    `vote: number ${at} of 'agreed' differs in view ${view}: rank 0 has ${first}, rank ${other} has ${values[other]![at]}. All members have to do the same steps on the same data.`,
  );
};

function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (Array.isArray(value)) return `[${value.map(String).join(', ')}]`;
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}
