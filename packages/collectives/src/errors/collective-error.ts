// A Failure describes what went wrong, as plain data; a CollectiveError is that failure as one rank reports it.
// Backends pass a failure on to all ranks, and each rank builds its own error from it, so that all ranks of a group
// report the same root cause.
import { stackLate } from '../late-stack.ts';

/** The codes of a CollectiveError. docs/errors.md has cause and next step of each. */
export type CollectiveCode =
  | 'ERR_COLL_TIMEOUT'
  | 'ERR_COLL_PEER_LOST'
  | 'ERR_COLL_MISMATCH'
  | 'ERR_COLL_ABORTED'
  | 'ERR_COLL_CLOSED'
  | 'ERR_COLL_INVALID'
  | 'ERR_COLL_UNSUPPORTED'
  | 'ERR_COLL_INIT'
  | 'ERR_COLL_SYSTEM';

/**
 * Description of what went wrong. If a group fails, `code`, `peers` and `what` are the same on all ranks; each
 * rank may report them for its own operation.
 */
export interface Failure {
  /** Stable code of the failure. */
  readonly code: CollectiveCode;
  /** The call that failed: a verb, or for example 'init', 'abort' or 'alloc'. */
  readonly verb: string;
  /**
   * Sequence number of the operation in the group (for send and recv, between the pair), or null if it has
   * none.
   */
  readonly seq: number | null;
  /** The ranks that the failure names: missing, lost, disagreeing, or the one that aborted. */
  readonly peers: readonly number[];
  /** The middle of the sentence: no verb, no group, no full stop. */
  readonly what: string;
  /** Advice for the user. Default: a sentence that depends on the code. */
  readonly next?: string;
  /** Set if another rank's error is the cause and `code` does not show it. */
  readonly isSecondary?: true;
}

/** The group and rank that report an error. */
export interface Site {
  /** Name of the group. */
  readonly group: string;
  /** Rank in the group that reports the error. */
  readonly rank: number;
  /** Number of ranks of the group. */
  readonly size: number;
}

const marker = Symbol.for('ringwise.CollectiveError');

const nextSteps: Partial<Record<CollectiveCode, string>> = {
  ERR_COLL_TIMEOUT: 'A rank may be stuck or may have skipped this call.',
  ERR_COLL_PEER_LOST:
    'See what that rank printed last; if it ended well, it made fewer calls than the others; for data of uneven length ddp() has model.join().',
  ERR_COLL_MISMATCH: 'All ranks must make the same calls in the same order.',
};

const nextOfMessages =
  'A message is received as it was sent, with the same count and dtype; where these are not known, use sendObject() and recvObject().';

export function nextOf({ code, verb }: Failure): string | undefined {
  const isMessage = verb === 'send' || verb === 'recv' || verb === 'batch';
  return code === 'ERR_COLL_MISMATCH' && isMessage ? nextOfMessages : nextSteps[code];
}

/**
 * The error of every verb and of init(). Compare `code`. Test with `CollectiveError.is` rather than
 * instanceof.
 */
export class CollectiveError extends Error implements Failure {
  /** Stable code, which programs may compare. */
  readonly code: CollectiveCode;
  readonly verb: string;
  readonly seq: number | null;
  readonly peers: readonly number[];
  readonly what: string;
  readonly next?: string;
  /** Name of the group; null before there is one. */
  readonly group: string | null;
  /** The rank that reports the error; null if the error occurred before the rank was known. */
  readonly rank: number | null;
  /** Number of ranks of the group; null before there is one. */
  readonly size: number | null;
  /**
   * True if this rank failed only because another rank did. The other rank's error then has the root cause.
   */
  readonly secondary: boolean;

  constructor(failure: Failure, site: Site | null, options?: ErrorOptions) {
    const next = failure.next ?? nextOf(failure);
    super(`${failure.verb}: ${failure.what}${where(failure, site)}${next ? `. ${next}` : '.'}`, options);
    this.name = 'CollectiveError';
    this.code = failure.code;
    this.verb = failure.verb;
    this.seq = failure.seq;
    this.peers = failure.peers;
    this.what = failure.what;
    if (next !== undefined) this.next = next;
    this.group = site?.group ?? null;
    this.rank = site?.rank ?? null;
    this.size = site?.size ?? null;
    this.secondary = failure.isSecondary ?? isOfOthers(failure, site);
    Object.defineProperty(this, marker, { value: true });
    stackLate(this);
  }

  /** Returns whether `error` is a CollectiveError, also one of another copy of this package. */
  static is(error: unknown): error is CollectiveError {
    return typeof error === 'object' && error !== null && marker in error;
  }
}

/** Returns whether the code and the peers of a failure tell that another rank is the cause. */
function isOfOthers({ code, peers }: Failure, site: Site | null): boolean {
  const isNamed = site !== null && peers.includes(site.rank);
  if (code === 'ERR_COLL_SYSTEM') return peers.length > 0 && !isNamed;
  return (code === 'ERR_COLL_PEER_LOST' || code === 'ERR_COLL_ABORTED') && !isNamed;
}

function where(failure: Failure, site: Site | null): string {
  if (site === null) return '';
  const seq = failure.seq === null ? '' : `, seq ${failure.seq}`;
  return ` (group "${site.group}", rank ${site.rank} of ${site.size}${seq})`;
}

/** Formats ranks as "rank 2" or "ranks 2, 5"; lists more than eight as "… and n more". */
export function rankList(ranks: readonly number[]): string {
  const shown = ranks.slice(0, 8).join(', ');
  const more = ranks.length > 8 ? ` and ${ranks.length - 8} more` : '';
  return `${ranks.length === 1 ? 'rank' : 'ranks'} ${shown}${more}`;
}

/** Advice for buffers in the order that PyTorch's calls have. */
export const inputFirst = (verb: string): string => `The input comes first: ${verb}(input, output).`;

/** Returns a failure without a sequence number and peers. */
export function local(code: CollectiveCode, verb: string, what: string, next?: string): Failure {
  return { code, verb, seq: null, peers: [], what, ...(next === undefined ? {} : { next }) };
}

export function invalid(verb: string, what: string, next?: string): Failure {
  return local('ERR_COLL_INVALID', verb, what, next);
}

export function unsupported(verb: string, what: string, next?: string): Failure {
  return local('ERR_COLL_UNSUPPORTED', verb, what, next);
}

/** Returns the sentence without a full stop at its end, as the middle of another sentence. */
export function withoutStop(sentence: string): string {
  return sentence.replace(/\.$/, '');
}
