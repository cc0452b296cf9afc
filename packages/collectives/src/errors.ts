// The error messages of a group (those of init() are in init/errors.ts, those about options in
// options/errors.ts). A Failure describes what went wrong, as plain data; a CollectiveError is that failure as
// one rank reports it. Backends pass a failure on to all ranks, and each rank builds its own error from it, so
// that all ranks of a group report the same root cause.

import type { DType } from './dtype.ts';
import { stackLate } from './late-stack.ts';
import type { ReduceOp } from './reduce-ops.ts';

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
    'See what that rank printed last; if it ended well, it made fewer calls than the others.',
  ERR_COLL_MISMATCH: 'All ranks must make the same calls in the same order.',
};
const nextOfMessages =
  'A message is received as it was sent, with the same count and dtype; where these are not known, use sendObject() and recvObject().';

function nextOf({ code, verb }: Failure): string | undefined {
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

// Failures of a running group, reported on all ranks.

/** Returns the failure ERR_COLL_TIMEOUT, which names the missing ranks. */
export function timedOut(verb: string, seq: number, missing: readonly number[], timeoutMs: number): Failure {
  const what = `no answer from ${rankList(missing)} within ${timeoutMs} ms`;
  return { code: 'ERR_COLL_TIMEOUT', verb, seq, peers: missing, what };
}

/** Failure of Work.wait(), which has a deadline of its own: the operation itself has not failed. */
export function notEnded(verb: string, seq: number, timeoutMs: number): Failure {
  const what = `it has not ended after ${timeoutMs} ms of wait()`;
  const next = 'It goes on: await it again, or end all with group.abort().';
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

/** Failure for an exception of `rank` that is no CollectiveError, such as one that a backend throws. */
export function unexpected(
  rank: number,
  error: string,
  verb = 'backend',
  seq: number | null = null,
): Failure {
  return { code: 'ERR_COLL_SYSTEM', verb, seq, peers: [rank], what: `rank ${rank} failed with ${error}` };
}

/** Failure if libnccl is missing or too old. `reason` is what the native addon says about it. */
export function unusableNccl(verb: string, seq: number | null, reason: string): Failure {
  const next = 'Install NCCL 2.27 or newer, or set RINGWISE_LIBNCCL to its libnccl.so.2.';
  return { ...systemFailure(verb, seq, reason), next };
}

/**
 * Failure of a call on a group that failed before. Has the first error's code and peers, and that error as
 * its cause.
 */
/** `next` tells how to get another group. */
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

/** `next` tells which group to use instead. */
export function groupClosed(verb: string, next?: string): Failure {
  return local('ERR_COLL_CLOSED', verb, 'the group is closed', next);
}

// Failures that only this rank reports, mostly of wrong arguments. They do not make later calls fail if they are
// thrown before anything is sent, or from the steps of a call (see group/runner.ts).

/** Returns a failure without a sequence number and peers. */
export function local(code: CollectiveCode, verb: string, what: string, next?: string): Failure {
  return { code, verb, seq: null, peers: [], what, ...(next === undefined ? {} : { next }) };
}

function invalid(verb: string, what: string, next?: string): Failure {
  return local('ERR_COLL_INVALID', verb, what, next);
}

const accepted =
  'a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member';

export function notABuffer(verb: string, got: string, next?: string): Failure {
  return invalid(verb, `cannot use ${got} as a buffer; expected ${accepted}`, next);
}

export function detachedBuffer(verb: string): Failure {
  return invalid(verb, 'the buffer is detached', 'Its memory was transferred to another thread or freed.');
}

export function unknownDtype(verb: string, got: string, known: readonly DType[]): Failure {
  return invalid(verb, `unknown dtype ${got}; expected one of ${known.join(', ')}`);
}

export function wrongArrayType(verb: string, dtype: DType, expected: string, got: string): Failure {
  return invalid(verb, `data does not hold ${dtype}; expected ${expected}, got ${got}`);
}

export function badCarrier(verb: string, fault: string): Failure {
  return invalid(verb, `the object's "ringwise.buffer" member returned no valid BufferView: ${fault}`);
}

/** Failure for a buffer whose owner does not allow writes now. */
export function notWritable(verb: string, reason: string, next?: string): Failure {
  return invalid(verb, `it must not write this buffer: ${withoutStop(reason)}`, next);
}

export function opNotDefined(
  verb: string,
  op: ReduceOp,
  dtype: DType,
  supported: readonly ReduceOp[],
): Failure {
  const instead = op === 'avg' && supported.includes('sum') ? "; use 'sum' and divide" : '';
  const list = supported.length === 0 ? 'none' : supported.join(', ');
  return local(
    'ERR_COLL_UNSUPPORTED',
    verb,
    `'${op}' is not defined for ${dtype}${instead}`,
    `Supported on ${dtype}: ${list}.`,
  );
}

export function factorMissing(verb: string, got: string): Failure {
  return invalid(verb, `op 'premulSum' needs this rank's factor; expected a number, got ${got}`);
}

export function factorUnused(verb: string, op: ReduceOp): Failure {
  return invalid(verb, `'factor' has no meaning for op '${op}'; it belongs to 'premulSum'`);
}

export function unknownWire(verb: string, got: string): Failure {
  return invalid(verb, `there is no wire '${got}'; expected 'full', 'bfloat16' or 'int8'`);
}

export function wireUnused(verb: string, wire: string, op: ReduceOp, dtype: string): Failure {
  return invalid(verb, `wire '${wire}' is for sum and avg of float32, got ${op} of ${dtype}`);
}

export function residualUnused(verb: string, wire: string): Failure {
  return invalid(verb, `a residual is what wire 'int8' has lost; expected that wire, got '${wire}'`);
}

export function wrongResidual(verb: string, expected: number, got: number, dtype: DType): Failure {
  return invalid(
    verb,
    `the residual does not fit the buffer; expected ${expected} × float32, got ${got} × ${dtype}`,
  );
}

export function residualOverlaps(verb: string): Failure {
  return invalid(
    verb,
    'the residual shares memory with the buffer; expected memory of its own',
    'Keep a Float32Array of zeros for each buffer.',
  );
}

export function residualOfList(verb: string): Failure {
  return invalid(verb, 'a residual belongs to one buffer; expected no list', 'Call once for each buffer.');
}

export function badRank(verb: string, name: 'root' | 'peer', got: string, size: number): Failure {
  return invalid(verb, `${name} is not a rank of the group; expected 0 to ${size - 1}, got ${got}`);
}

export function selfPeer(verb: string, rank: number): Failure {
  return invalid(verb, `rank ${rank} is this rank itself; expected another one`, 'Copy the memory instead.');
}

export function dtypesDiffer(verb: string, input: DType, output: DType): Failure {
  return invalid(verb, `input and output differ in dtype; expected ${input} for both, output is ${output}`);
}

type Side = 'input' | 'output';

export function wrongCount(verb: string, side: Side, expected: number, got: number): Failure {
  return invalid(verb, `${side} has the wrong length; expected ${expected} elements, got ${got}`);
}

export function notDivisible(verb: string, count: number, size: number): Failure {
  return invalid(
    verb,
    `${count} elements cannot be split evenly; expected a multiple of ${size}`,
    'Pass sendCounts and recvCounts for parts of different lengths.',
  );
}

export function badCounts(verb: string, name: string, size: number, got: string): Failure {
  return invalid(verb, `${name} is not usable; expected a length for each of ${size} ranks, got ${got}`);
}

export function oneOfCounts(verb: string): Failure {
  return invalid(verb, 'of sendCounts and recvCounts only one is given; expected both or neither');
}

export function ownCountsDiffer(verb: string, rank: number, sends: number, receives: number): Failure {
  return invalid(
    verb,
    `counts differ for rank ${rank} itself; it sends ${sends} elements and expects ${receives}`,
  );
}

export function rootOnly(verb: string, side: Side, root: number, isRoot: boolean): Failure {
  const what = isRoot ? `the root needs an ${side}` : `only the root, rank ${root}, has an ${side}`;
  return invalid(verb, `${what}; expected ${isRoot ? 'a buffer, got null' : 'null, got a buffer'}`);
}

export function wrongListLength(verb: string, side: Side, size: number, got: number): Failure {
  return invalid(
    verb,
    `${side} is a list of the wrong length; expected a part for each of ${size} ranks, got ${got}`,
  );
}

export function wrongListPart(
  verb: string,
  side: Side,
  rank: number,
  expected: number,
  got: number,
): Failure {
  return invalid(
    verb,
    `${side} has the wrong length for rank ${rank}; expected ${expected} elements, got ${got}`,
    'Where parts differ, pass the same `counts` on all ranks.',
  );
}

export function listLengthsDiffer(verb: string, expected: number, got: number): Failure {
  return invalid(
    verb,
    `input and output are lists of different lengths; expected ${expected} buffers, got ${got}`,
  );
}

export function listDtypesDiffer(verb: string, side: Side, got: readonly DType[]): Failure {
  return invalid(verb, `the parts of ${side} differ in dtype; expected one for all, got ${got.join(', ')}`);
}

export function listOnDevice(verb: string, side: Side): Failure {
  return invalid(
    verb,
    `${side} is a list of memory that JavaScript cannot see; expected one buffer`,
    'Only host memory can be copied to and from a list.',
  );
}

export function oneList(verb: string): Failure {
  return invalid(verb, 'of input and output only one is a list; expected two lists or two buffers');
}

export function countsOfLists(verb: string): Failure {
  return invalid(
    verb,
    'lists and counts are both given; expected one of them: lists have lengths of their own',
  );
}

export function countsOfMany(verb: string): Failure {
  return invalid(
    verb,
    "'counts' has no meaning for many buffers in one call; expected one input and one output",
  );
}

export function reproducibleWire(verb: string, wire: string): Failure {
  return invalid(
    verb,
    `reproducible sums travel as integers; expected no wire, got '${wire}'`,
    'Leave one of the two out.',
  );
}

export function reproducibleList(verb: string): Failure {
  return invalid(
    verb,
    'a reproducible reduction has one buffer; expected no list',
    'Its bits do not depend on the cuts: one call for each buffer gives the same.',
  );
}

export function notCloneable(verb: string, reason: string): Failure {
  return invalid(
    verb,
    `the value cannot be sent: ${withoutStop(reason)}`,
    'Send what structured clone takes: data, no functions.',
  );
}

export function objectTooLarge(verb: string, bytes: number, max: number): Failure {
  return invalid(
    verb,
    `the objects are too large; expected at most ${max} bytes together, got ${bytes}`,
    'Send large data as typed arrays.',
  );
}

export function unreadableObject(verb: string, reason: string): Failure {
  return invalid(
    verb,
    `what arrived is no object that this rank can read: ${withoutStop(reason)}`,
    'Do all ranks run the same version of Node?',
  );
}

function withoutStop(sentence: string): string {
  return sentence.replace(/\.$/, '');
}

export function missingValues(verb: string, size: number, got: number | undefined): Failure {
  return invalid(verb, `the root has ${got ?? 'no'} values; expected one for each of ${size} ranks`);
}

export function badColor(got: string): Failure {
  return invalid('split', `color is not usable; expected a whole number, or null for no group, got ${got}`);
}

export function badKey(got: string): Failure {
  return invalid('split', `key is not usable; expected a number, got ${got}`);
}

export function badMembers(size: number, got: string): Failure {
  return invalid(
    'subgroup',
    `the list of ranks is not usable; expected different ranks from 0 to ${size - 1}, got ${got}`,
  );
}

/** Failure if the two buffers of one operation are on different devices, or one is on the host. */
export function devicesDiffer(verb: string, input: string, output: string): Failure {
  return invalid(
    verb,
    `input and output are on different devices; expected one for both, input is on ${input}, output on ${output}`,
    'Copy one of them to the other device first.',
  );
}

export function buffersOverlap(verb: string): Failure {
  return invalid(
    verb,
    'input and output share memory; expected two separate buffers',
    'Copy the input first.',
  );
}

export function listOverlaps(verb: string, first: string, second: string): Failure {
  return invalid(
    verb,
    `${first} and ${second} share memory that the call writes; expected separate buffers`,
    'Pass each buffer once, or a copy.',
  );
}

export function badLabel(verb: string, got: string): Failure {
  return invalid(verb, `label is not usable; expected a string that is not empty, got ${got}`);
}

export function badAllocCount(got: string): Failure {
  return invalid('alloc', `count is not usable; expected a whole number of elements, got ${got}`);
}

export function backendNameTaken(name: string): Failure {
  return invalid('registerBackend', `there is a backend named '${name}' already; expected a new name`);
}

export function noSubgroups(verb: string): Failure {
  return local(
    'ERR_COLL_UNSUPPORTED',
    verb,
    'this group cannot have subgroups; it was made without the `subgroups` option',
    'Groups of init() and loopbackGroups() can.',
  );
}

export function noSurvivors(): Failure {
  return unsupported(
    'shrink',
    'this group has no store in which its ranks could meet; groups of init() have one',
  );
}

/** `instead` is the sentence that says how to get the next group. */
export function notByShrink(instead: string): Failure {
  return unsupported('shrink', 'the members of an elastic job agree on their next group themselves', instead);
}

export function lostRanksUnknown(got: string): Failure {
  const next = 'Name the ranks to leave out in `without`; by default they are those that the failure names.';
  return invalid('shrink', `it cannot tell who is lost; expected ranks of the group, got ${got}`, next);
}

export function notCapturable(verb: string, why: string): Failure {
  return unsupported(
    verb,
    `it cannot be part of a step that is being captured: ${why}; expected a collective on memory of that step's device, by the nccl backend`,
    'Call it before or after the step.',
  );
}

function unsupported(verb: string, what: string, next?: string): Failure {
  return local('ERR_COLL_UNSUPPORTED', verb, what, next);
}

export function notReproducible(verb: string, op: ReduceOp, dtype: DType, known: readonly DType[]): Failure {
  return unsupported(
    verb,
    `there is no reproducible '${op}' of ${dtype}; expected 'sum' or 'avg' of ${known.join(', ')}`,
    'Integers, and min and max, have the same bits in any order anyway.',
  );
}

export function reproducibleOnDevice(verb: string): Failure {
  return unsupported(verb, 'a reproducible reduction needs memory that JavaScript can see');
}

export function tooManyAddends(verb: string, got: number, max: number): Failure {
  return unsupported(verb, `too many addends for a reproducible sum; expected at most ${max}, got ${got}`);
}

export function verbNotSupported(verb: string, backend: string, verbs: readonly string[]): Failure {
  return unsupported(verb, `the ${backend} backend does not have it`, `It has: ${verbs.join(', ')}.`);
}

export function deviceNotSupported(verb: string, backend: string, got: string, devices: string): Failure {
  return unsupported(
    verb,
    `the ${backend} backend cannot reach ${got} memory; expected ${devices}`,
    'Copy it to such memory first, or take a backend that reaches it.',
  );
}

export function elementsOnDevice(got: string): Failure {
  return unsupported(
    'elementsOf',
    `expected memory that JavaScript can see, got that of ${got}`,
    'Give one buffer in the place of a list of parts, or copy to host memory first.',
  );
}

export function cannotBlock(verb: string, backend: string): Failure {
  return unsupported(
    verb,
    `the ${backend} backend may not block this thread`,
    'Await the asynchronous form.',
  );
}

export function memoryNotVisible(backend: string): Failure {
  return unsupported('alloc', `memory of the ${backend} backend is not visible to JavaScript`);
}

export function tooLongForMpi(verb: string, count: number): Failure {
  return unsupported(
    verb,
    `${count} elements in parts are too many for MPI; expected at most 2147483647 for all ranks together`,
    'Call it on pieces.',
  );
}

// Failures that a backend reports about an operation.

/** Failure that the CUDA device of `rank` reported; `reason` is the middle of a sentence. */
export function deviceFailed(verb: string, seq: number, rank: number, reason: string): Failure {
  const what = `the CUDA device of rank ${rank} reported ${reason}`;
  return { code: 'ERR_COLL_SYSTEM', verb, seq, peers: [rank], what };
}

/** Returns the mismatch of a piece with a hint on the whole operation, which is `signature` on this rank. */
export function mismatchOfPieces(failure: Failure, signature: string, pieces: number): Failure {
  const whole = `This rank called ${signature}, which is sent in ${pieces} pieces; the digest stands for the whole lengths.`;
  return { ...failure, next: `${failure.next ?? nextOf(failure)} ${whole}` };
}

/** Failure that the native group of a backend reported. */
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
