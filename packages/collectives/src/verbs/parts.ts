// allGather, gather, scatter and reduceScatter: each rank's part on one side, the whole of all parts on the
// other. The whole is one buffer or a list of parts. In a call with many buffers both sides are lists of
// buffers.
import type { AllGather, CollectiveOperation, Gather, ReduceScatter, Scatter } from '../backend.ts';
import { countsOfMany, wrongCount, wrongListPart } from '../errors.ts';
import { asBuffer, type BufferView } from '../group/buffer.ts';
import type { Calls } from '../group/calls.ts';
import { countsFault } from '../group/check.ts';
import { allocPacked, type Packed, pack, unpack } from '../group/pack.ts';
import type { Call } from '../group/steps.ts';
import { checkOptions, checkReduceOptions } from '../options/known-options.ts';
import type { Buffers, CountsOptions, ReduceOptions, RootOptions } from '../options/options.ts';
import { defaultFactor } from '../reduce-ops.ts';
import { bundled } from './bundle.ts';
import { isList, listOf, viewsOf } from './list.ts';
import { isReproducible, reproducibleReduceScatter } from './reproducible.ts';

type Counts = readonly number[] | null;

export function allGather(calls: Calls, from: Buffers, to: Buffers, options: CountsOptions): Call<void> {
  checkOptions(calls, 'allGather', options);
  const { timeoutMs = calls.timeoutMs, label, counts } = options;
  const operationOf: OperationOf = (input, output, counts, seq, packing): AllGather => {
    return { verb: 'allGather', seq, timeoutMs, packing, label, input, output: output as BufferView, counts };
  };
  return parted(calls, 'allGather', { part: from, whole: to, joins: true, counts }, operationOf);
}

export function gather(
  calls: Calls,
  from: Buffers,
  to: Buffers | null,
  options: RootOptions & CountsOptions,
): Call<void> {
  checkOptions(calls, 'gather', options);
  const { timeoutMs = calls.timeoutMs, label, root = 0, counts } = options;
  const operationOf: OperationOf = (input, output, counts, seq, packing): Gather => {
    return { verb: 'gather', seq, timeoutMs, packing, label, input, output, counts, root };
  };
  return parted(calls, 'gather', { part: from, whole: to, joins: true, counts }, operationOf);
}

export function scatter(
  calls: Calls,
  from: Buffers | null,
  to: Buffers,
  options: RootOptions & CountsOptions,
): Call<void> {
  checkOptions(calls, 'scatter', options);
  const { timeoutMs = calls.timeoutMs, label, root = 0, counts } = options;
  const operationOf: OperationOf = (output, input, counts, seq, packing): Scatter => {
    return { verb: 'scatter', seq, timeoutMs, packing, label, input, output, counts, root };
  };
  return parted(calls, 'scatter', { part: to, whole: from, joins: false, counts }, operationOf);
}

export function reduceScatter(
  calls: Calls,
  from: Buffers | null,
  to: Buffers,
  options: ReduceOptions & CountsOptions,
): Call<void> {
  checkReduceOptions(calls, 'reduceScatter', options);
  if (isReproducible(options)) {
    if (!isList(to))
      checkCounts(calls, 'reduceScatter', 'output', options.counts, asBuffer(to, 'reduceScatter').count);
    return reproducibleReduceScatter(calls, from, to, countsOf(options.counts), options);
  }
  const { timeoutMs = calls.timeoutMs, label, op = 'sum', counts } = options;
  const factor = options.factor ?? defaultFactor(op);
  const operationOf: OperationOf = (output, whole, counts, seq, packing): ReduceScatter => {
    const input = whole as BufferView;
    return { verb: 'reduceScatter', seq, timeoutMs, packing, label, input, output, counts, op, factor };
  };
  if (from === null) asBuffer(from as never, 'reduceScatter'); // refuses it
  return parted(calls, 'reduceScatter', { part: to, whole: from, joins: false, counts }, operationOf);
}

type OperationOf = (
  part: BufferView,
  whole: BufferView | null,
  counts: Counts,
  seq: number,
  packing: number,
) => CollectiveOperation;

interface Sides {
  readonly part: Buffers;
  /** Null on ranks that do not have the whole. */
  readonly whole: Buffers | null;
  /** True if parts are joined into the whole, false if the whole is split into parts. */
  readonly joins: boolean;
  readonly counts: readonly number[] | undefined;
}

function parted(
  calls: Calls,
  verb: CollectiveOperation['verb'],
  sides: Sides,
  operationOf: OperationOf,
): Call<void> {
  const { part: parts, whole, joins } = sides;
  if (isList(parts)) return many(calls, verb, sides, parts, operationOf);
  const part = asBuffer(parts, verb);
  checkCounts(calls, verb, joins ? 'input' : 'output', sides.counts, part.count);
  if (whole === null || !isList(whole)) {
    const view = whole === null ? null : asBuffer(whole, verb);
    return calls.accept(operationOf(part, view, countsOf(sides.counts), calls.seq, 0));
  }
  const side = joins ? 'output' : 'input';
  const list = allocPacked(listOf(calls, verb, side, whole));
  // If only the root has the list, the other ranks cannot know that its parts differ.
  const isEverywhere = verb === 'allGather' || verb === 'reduceScatter';
  const counts = countsOf(
    sides.counts ?? (isEverywhere ? list.members.map(({ count }) => count) : undefined),
  );
  const operation = operationOf(part, list.whole, counts, calls.seq, 0);
  checkList(calls, verb, side, list, counts, part.count);
  calls.check(operation);
  calls.tell(verb, joins ? list.members : [part]);
  calls.acceptTold(operation);
  if (joins) return { operations: [operation], finish: () => unpack(list) };
  pack(list);
  return operation;
}

/** Checks the counts before countsOf(), which drops them if they are all equal. */
function checkCounts(
  calls: Calls,
  verb: CollectiveOperation['verb'],
  side: 'input' | 'output',
  counts: readonly number[] | undefined,
  partCount: number,
): void {
  const own = counts?.[calls.rank] ?? partCount;
  const fault =
    countsFault(calls, verb, 'counts', counts ?? null) ??
    (own === partCount ? null : wrongCount(verb, side, own, partCount));
  if (fault !== null) throw calls.error(fault);
}

/** Returns null if all counts are equal. */
function countsOf(counts: readonly number[] | undefined): Counts {
  return counts?.some((count) => count !== counts[0]) ? counts : null;
}

function checkList(
  calls: Calls,
  verb: string,
  side: 'input' | 'output',
  { members }: Packed,
  counts: Counts,
  partCount: number,
): void {
  const expectedOf = (rank: number) => counts?.[rank] ?? partCount;
  const wrong = members.findIndex(({ count }, rank) => count !== expectedOf(rank));
  if (wrong < 0) return;
  throw calls.error(wrongListPart(verb, side, wrong, expectedOf(wrong), members[wrong]!.count));
}

function many(
  calls: Calls,
  verb: CollectiveOperation['verb'],
  { whole, joins, counts }: Sides,
  list: Parameters<typeof viewsOf>[0],
  operationOf: OperationOf,
): Call<void> {
  if (counts !== undefined) throw calls.error(countsOfMany(verb));
  const parts = viewsOf(list, verb);
  const wholes = whole === null ? null : viewsOf(isList(whole) ? whole : [whole], verb);
  const roles = [
    { views: parts, blocks: 1, isRead: joins, isWritten: !joins },
    wholes && { views: wholes, blocks: calls.size, isRead: !joins, isWritten: joins },
  ];
  return bundled(calls, verb, parts, roles, ([part, whole], seq, packing) =>
    operationOf(part as BufferView, whole ?? null, null, seq, packing),
  );
}
