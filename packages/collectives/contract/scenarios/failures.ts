// Scenarios in which ranks disagree, are late, leave or abort. The rank that differs is always the last one.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Group } from '../../src/group/group.ts';
import { anySource } from '../../src/options/options.ts';
import { invoke, type Mode } from '../invoke.ts';
import { errorOf, type PlainError } from '../outcome.ts';

export const mismatchKinds = [
  'count',
  'dtype',
  'op',
  'verb',
  'root',
  'root of reduce',
  'root of gather',
  'root of scatter',
  'counts',
  'counts of gather',
  'counts of reduceScatter',
  'counts of allToAll',
  'list',
  'label',
  'a label that one lacks',
  'label of a list',
  'label of objects',
  'label of a barrier',
  'reproducibility',
  'op of a reproducible sum',
  'object and buffer',
  'pair',
  'dtype of pair',
  'pair from any',
] as const;
export type MismatchKind = (typeof mismatchKinds)[number];

/** Labels of the mismatch by label; the last rank uses the second. */
export const labels = ['gradients of the encoder', 'gradients of the décodeur'] as const;

export interface Failed {
  /** Error of the operation; null if it succeeded. */
  readonly error: PlainError | null;
  /** Error of a call after it; null if it succeeded. */
  readonly later: PlainError | null;
  /** Whether this rank's memory is unchanged. */
  readonly isUntouched: boolean;
}

/** Makes the last rank call something else than the other ranks, or with other arguments. */
export async function mismatch(group: Group, kind: MismatchKind): Promise<Failed> {
  const isOdd = group.rank === group.size - 1;
  const buffer = new Float32Array(5000).fill(group.rank + 1);
  const error = await errorOf(() => disagree(group, kind, isOdd, buffer));
  const later = await errorOf(() => group.barrier());
  return { error, later, isUntouched: buffer.every((x) => x === group.rank + 1) };
}

function disagree(
  group: Group,
  kind: MismatchKind,
  isOdd: boolean,
  buffer: Float32Array,
): PromiseLike<unknown> {
  const { rank, size } = group;
  switch (kind) {
    case 'count':
      return group.allReduce(isOdd ? buffer.subarray(0, 4999) : buffer);
    case 'dtype':
      return group.allReduce(isOdd ? { data: new Int32Array(buffer.buffer), dtype: 'int32' } : buffer);
    case 'op':
      return group.allReduce(buffer, { op: isOdd ? 'max' : 'sum' });
    case 'verb':
      return isOdd ? group.broadcast(buffer) : group.allReduce(buffer);
    case 'root':
      return group.broadcast(buffer, { root: isOdd ? size - 1 : 0 });
    case 'root of reduce':
      return group.reduce(buffer, { root: isOdd ? size - 1 : 0 });
    case 'root of gather':
    case 'root of scatter': {
      const root = isOdd ? size - 1 : 0;
      const whole = rank === root ? new Float32Array(buffer.length * size) : null;
      const options = { root };
      return kind === 'root of gather'
        ? group.gather(buffer, whole, options)
        : group.scatter(whole, buffer, options);
    }
    case 'counts':
    case 'counts of gather':
    case 'counts of reduceScatter': {
      // The last rank is wrong about the part of rank 0.
      const counts = new Array<number>(size).fill(1000);
      counts[0] = isOdd ? 10 : 20;
      const part = buffer.subarray(0, counts[rank]);
      const whole = new Float32Array(counts.reduce((sum, count) => sum + count));
      if (kind === 'counts') return group.allGather(part, whole, { counts });
      if (kind === 'counts of reduceScatter') return group.reduceScatter(whole, part, { counts });
      return group.gather(part, rank === 0 ? whole : null, { counts });
    }
    case 'counts of allToAll': {
      // All ranks send each other 100 elements, but the last rank expects 50 from rank 0.
      const sendCounts = new Array<number>(size).fill(100);
      const recvCounts = sendCounts.map((count, from) => (isOdd && from === 0 ? 50 : count));
      const output = new Float32Array(recvCounts.reduce((sum, count) => sum + count));
      return group.allToAll(buffer.subarray(0, 100 * size), output, { sendCounts, recvCounts });
    }
    case 'list': {
      // The lists differ, but their total lengths are equal.
      const cut = isOdd ? 3 : 5;
      return group.allReduce([buffer.subarray(0, cut), buffer.subarray(cut, 8)]);
    }
    case 'label':
      return group.allReduce(buffer, { label: isOdd ? labels[1] : labels[0] });
    case 'a label that one lacks':
      return group.reduceScatter(
        new Float32Array(size),
        buffer.subarray(0, 1),
        isOdd ? {} : { label: labels[0] },
      );
    case 'label of a list':
      return group.allReduce([buffer, buffer.slice(0, 3)], { label: isOdd ? labels[1] : labels[0] });
    case 'label of objects':
      return group.allGatherObject('x', { label: isOdd ? labels[1] : labels[0] });
    case 'label of a barrier':
      return group.monitoredBarrier({ label: isOdd ? labels[1] : labels[0] });
    case 'reproducibility':
      return group.allReduce(buffer, { reproducible: isOdd });
    case 'op of a reproducible sum':
      return group.allReduce(buffer, { reproducible: true, op: isOdd ? 'avg' : 'sum' });
    case 'object and buffer':
      return isOdd ? group.broadcast(buffer) : group.allGatherObject('x'.repeat(100));
    case 'pair':
      if (isOdd) return group.recv(buffer.subarray(0, 4999), 0);
      return rank === 0 ? group.send(buffer, size - 1) : group.barrier();
    case 'dtype of pair':
      if (isOdd) return group.recv(new Int32Array(buffer.buffer), 0);
      return rank === 0 ? group.send(buffer, size - 1) : group.barrier();
    case 'pair from any':
      if (isOdd) return group.recv(buffer.subarray(1), anySource, { tag: 5 });
      return rank === 0 ? group.send(buffer, size - 1, { tag: 5 }) : group.barrier();
  }
}

/** Makes rank 0 abort while the others wait for it. */
export async function abortByRank0(group: Group): Promise<Failed> {
  const buffer = new Float32Array(100).fill(1);
  const error = await errorOf(() => {
    if (group.rank === 0) return group.abort(new Error('out of patience'));
    return group.allReduce(buffer);
  });
  const later = await errorOf(() => group.barrier());
  return { error, later, isUntouched: buffer.every((x) => x === 1) };
}

/**
 * Makes the last rank come to a barrier long after its deadline on the other ranks. `timeoutMs` is that deadline.
 */
export async function lateRank(group: Group, timeoutMs: number, mode: Mode): Promise<Failed> {
  await group.barrier();
  const error = await errorOf(async () => {
    if (group.rank === group.size - 1) await sleep(4 * timeoutMs);
    return invoke(group, mode, 'barrier', { timeoutMs });
  });
  const later = await errorOf(() => group.barrier());
  return { error, later, isUntouched: true };
}

/** Makes all ranks but 0 and 1 come to a monitoredBarrier long after its deadline. */
export async function manyLate(group: Group, timeoutMs: number, mode: Mode): Promise<Failed> {
  await group.barrier();
  const error = await errorOf(async () => {
    if (group.rank > 1) await sleep(2 * timeoutMs);
    return invoke(group, mode, 'monitoredBarrier', { timeoutMs });
  });
  const later = await errorOf(() => group.barrier());
  return { error, later, isUntouched: true };
}

/** Makes the last rank close the group while the others wait for it. */
export async function earlyClose(group: Group): Promise<PlainError | null> {
  if (group.rank === group.size - 1) {
    await group.close();
    return null;
  }
  return await errorOf(() => group.barrier());
}

export interface Closed {
  /** Errors of the pending operations. */
  readonly errors: readonly PlainError[];
  /** Whether all results are right. */
  readonly isRight: boolean;
  /** Whether all operations had ended when close() did. */
  readonly areDone: boolean;
  /** Errors of a call after close(), in its plain and its Sync form. */
  readonly later: PlainError | null;
  readonly laterSync: PlainError | null;
}

/**
 * Makes all ranks close while operations are pending. These succeed, later calls fail, and closing twice is
 * allowed.
 */
export async function closePending(group: Group): Promise<Closed> {
  const buffers = [1, 1000, 100_000].map((count) => new Float32Array(count).fill(2));
  const works = buffers.map((buffer) => group.allReduce(buffer));
  const closed = group.close();
  const later = await errorOf(() => group.barrier());
  const laterSync = await errorOf(() => group.barrierSync());
  await closed;
  const areDone = works.every((work) => work.done);
  await group.close();
  const errors = await Promise.all(works.map((work) => errorOf(() => work)));
  return {
    errors: errors.filter((error) => error !== null),
    isRight: buffers.every((buffer) => buffer.every((x) => x === 2 * group.size)),
    areDone,
    later,
    laterSync,
  };
}
