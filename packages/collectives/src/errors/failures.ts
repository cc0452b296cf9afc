// Failures of a running group, reported on all ranks, and those of calls on a group that has failed or is closed.
import {
  type CollectiveCode,
  type CollectiveError,
  type Failure,
  local,
  nextOf,
  rankList,
  withoutStop,
} from './collective-error.ts';

/** Returns the failure ERR_COLL_TIMEOUT, which names the missing ranks. */
export function timedOut(verb: string, seq: number, missing: readonly number[], timeoutMs: number): Failure {
  const what = `no answer from ${rankList(missing)} within ${timeoutMs} ms`;
  return { code: 'ERR_COLL_TIMEOUT', verb, seq, peers: missing, what };
}

/** Returns the failure of Work.wait(), which has a deadline of its own: the operation itself has not failed. */
export function notEnded(verb: string, seq: number, timeoutMs: number): Failure {
  const what = `it has not ended after ${timeoutMs} ms of wait()`;
  const next = 'It continues: await it again, or end all with group.abort().';
  return { code: 'ERR_COLL_TIMEOUT', verb, seq, peers: [], what, next };
}

/** Returns the failure ERR_COLL_PEER_LOST. `detail` says how the loss was noticed. */
export function peerLost(verb: string, seq: number | null, peer: number, detail: string): Failure {
  return { code: 'ERR_COLL_PEER_LOST', verb, seq, peers: [peer], what: `lost rank ${peer} (${detail})` };
}

/**
 * Returns the failure ERR_COLL_MISMATCH of two ranks that called different operations. The signatures are those of
 * group/signature.ts.
 */
export function mismatch(
  verb: string,
  seq: number,
  one: { readonly rank: number; readonly signature: string },
  other: { readonly rank: number; readonly signature: string },
): Failure {
  const what = `rank ${one.rank} called ${one.signature} but rank ${other.rank} called ${other.signature}`;
  const peers = [one.rank, other.rank].sort((a, b) => a - b);
  return { code: 'ERR_COLL_MISMATCH', verb, seq, peers, what };
}

/** Returns the failure ERR_COLL_ABORTED of a rank that called abort(). */
export function aborted(rank: number, reason: string): Failure {
  const what = `rank ${rank} aborted the group: ${reason}`;
  return { code: 'ERR_COLL_ABORTED', verb: 'abort', seq: null, peers: [rank], what };
}

/** Returns the failure ERR_COLL_SYSTEM. `detail` says what the operating system or a library refused. */
export function systemFailure(verb: string, seq: number | null, detail: string): Failure {
  return { code: 'ERR_COLL_SYSTEM', verb, seq, peers: [], what: detail };
}

/** Returns the failure if the operating system refuses what a rank needs for its end of a group; `reason` says what. */
export function cannotMakeEnd(reason: string): Failure {
  const what = `cannot make this rank's end of the group: ${withoutStop(reason)}`;
  const next =
    'Check the limits of the process (ulimit -n, ulimit -u), and close groups that it no longer needs.';
  return { ...systemFailure('init', null, what), next };
}

/** Returns the failure if the id of this host cannot be read; `reason` is the system's. */
export function hostIdUnreadable(reason: string): Failure {
  const what = `cannot read which host this is: ${withoutStop(reason)}`;
  return { ...systemFailure('init', null, what), next: 'Raise the limit of open files (ulimit -n).' };
}

/** Returns the failure for an exception of `rank` that is no CollectiveError, such as one that a backend throws. */
export function unexpected(
  rank: number,
  error: string,
  verb = 'backend',
  seq: number | null = null,
): Failure {
  return { code: 'ERR_COLL_SYSTEM', verb, seq, peers: [rank], what: `rank ${rank} failed with ${error}` };
}

/**
 * Returns the failure of a call whose turn has come after `rank` has given its memory away. The other ranks have begun
 * it, or will.
 */
export function detachedBeforeTurn(verb: string, seq: number, rank: number): Failure {
  const what = `rank ${rank} has detached a buffer of the call before its turn came`;
  const next = 'Transfer a buffer only after its call has ended.';
  return { code: 'ERR_COLL_SYSTEM', verb, seq, peers: [rank], what, next };
}

/** Returns the failure if libnccl is missing or too old. `reason` is what the native addon says about it. */
export function unusableNccl(verb: string, seq: number | null, reason: string): Failure {
  const next = 'Install NCCL 2.27 or newer, or set RINGWISE_LIBNCCL to its libnccl.so.2.';
  return { ...systemFailure(verb, seq, reason), next };
}

/**
 * Returns the failure of a call on a group that failed before, with the code and peers of the first error. `next` tells
 * how to get another group.
 */
export function failedEarlier(
  verb: string,
  first: CollectiveError,
  next = 'Make a new group with init().',
): Failure {
  const what = `the group failed earlier, ${first.verb}: ${first.what}`;
  return {
    code: first.code,
    verb,
    seq: null,
    peers: first.peers,
    what,
    next,
  };
}

/** Returns the failure ERR_COLL_CLOSED. `next` tells which group to use instead. */
export function groupClosed(verb: string, next?: string): Failure {
  return local('ERR_COLL_CLOSED', verb, 'the group is closed', next);
}

/** Returns the failure that the CUDA device of `rank` reported; `reason` is the middle of a sentence. */
export function deviceFailed(verb: string, seq: number, rank: number, reason: string): Failure {
  const what = `the CUDA device of rank ${rank} reported ${reason}`;
  return { code: 'ERR_COLL_SYSTEM', verb, seq, peers: [rank], what };
}

/** Returns the mismatch of a piece with a hint on the whole operation, which is `signature` on this rank. */
export function mismatchOfPieces(failure: Failure, signature: string, pieces: number): Failure {
  const whole = `This rank called ${signature}, which is sent in ${pieces} pieces; the digest covers the whole lengths.`;
  return { ...failure, next: `${failure.next ?? nextOf(failure)} ${whole}` };
}

/** Returns the failure that the native group of a backend reported. */
export function hostFailure(
  code: CollectiveCode,
  verb: string,
  seq: number | null,
  failure: { readonly peers: readonly number[]; readonly text: string },
): Failure {
  return { code, verb, seq, peers: failure.peers, what: failure.text };
}

/** Returns the failure with a hint that flight records have been written to `directory`. */
export function withFlightRecords(failure: Failure, directory: string): Failure {
  const next = failure.next ?? nextOf(failure);
  return { ...failure, next: `${next ? `${next} ` : ''}Flight records of its ranks are in ${directory}.` };
}
