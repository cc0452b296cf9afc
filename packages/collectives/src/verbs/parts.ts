// allGather, gather, scatter and reduceScatter: each rank's part on one side, the whole of all parts on the
// other. The whole is one buffer or a list of parts. In a call with many buffers both sides are lists of
// buffers.
import type { AllGather, CollectiveOperation, Gather, ReduceScatter, Scatter } from '../backend.ts';
import { byteSize } from '../dtype.ts';
import { countsOfMany, listAndBuffer, wrongCount, wrongListPart } from '../errors.ts';
import type { Admission } from '../group/admission.ts';
import { allocHost, asBuffer, type BufferView, elementsOf } from '../group/buffer.ts';
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

export function allGather(group: Admission, from: Buffers, to: Buffers, options: CountsOptions): Call<void> {
  checkOptions(group, 'allGather', options);
  const { timeoutMs = group.timeoutMs, label, counts } = options;
  const operationOf: OperationOf = (input, output, counts, seq, packing): AllGather => {
    return { verb: 'allGather', seq, timeoutMs, packing, label, input, output: output as BufferView, counts };
  };
  if (to === null) asBuffer(to as never, 'allGather'); // refuses it
  return parted(group, 'allGather', { part: from, whole: to, joins: true, counts }, operationOf);
}

export function gather(
  group: Admission,
  from: Buffers,
  to: Buffers | null,
  options: RootOptions & CountsOptions,
): Call<void> {
  checkOptions(group, 'gather', options);
  const { timeoutMs = group.timeoutMs, label, root = 0, counts } = options;
  const operationOf: OperationOf = (input, output, counts, seq, packing): Gather => {
    return { verb: 'gather', seq, timeoutMs, packing, label, input, output, counts, root };
  };
  return parted(group, 'gather', { part: from, whole: to, joins: true, counts }, operationOf);
}

export function scatter(
  group: Admission,
  from: Buffers | null,
  to: Buffers,
  options: RootOptions & CountsOptions,
): Call<void> {
  checkOptions(group, 'scatter', options);
  const { timeoutMs = group.timeoutMs, label, root = 0, counts } = options;
  const operationOf: OperationOf = (output, input, counts, seq, packing): Scatter => {
    return { verb: 'scatter', seq, timeoutMs, packing, label, input, output, counts, root };
  };
  return parted(group, 'scatter', { part: to, whole: from, joins: false, counts }, operationOf);
}

export function reduceScatter(
  group: Admission,
  from: Buffers | null,
  to: Buffers,
  options: ReduceOptions & CountsOptions,
): Call<void> {
  checkReduceOptions(group, 'reduceScatter', options);
  if (isReproducible(options)) {
    if (!isList(to))
      checkCounts(group, 'reduceScatter', 'output', options.counts, asBuffer(to, 'reduceScatter').count);
    return reproducibleReduceScatter(group, from, to, countsOf(options.counts), options);
  }
  const { timeoutMs = group.timeoutMs, label, op = 'sum', counts } = options;
  const factor = options.factor ?? defaultFactor(op);
  const operationOf: OperationOf = (output, whole, counts, seq, packing): ReduceScatter => {
    const input = whole as BufferView;
    return { verb: 'reduceScatter', seq, timeoutMs, packing, label, input, output, counts, op, factor };
  };
  if (from === null) asBuffer(from as never, 'reduceScatter'); // refuses it
  return parted(group, 'reduceScatter', { part: to, whole: from, joins: false, counts }, operationOf);
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
  group: Admission,
  verb: CollectiveOperation['verb'],
  sides: Sides,
  operationOf: OperationOf,
): Call<void> {
  const { part: parts, whole, joins } = sides;
  if (isList(parts)) return many(group, verb, sides, parts, operationOf);
  const part = asBuffer(parts, verb);
  checkCounts(group, verb, joins ? 'input' : 'output', sides.counts, part.count);
  if (whole === null || !isList(whole)) {
    const view = whole === null ? null : asBuffer(whole, verb);
    const counts = countsOf(sides.counts);
    const operation = operationOf(part, view, counts, group.seq, 0);
    const fault = group.faultOf(operation);
    if (fault === null) return group.acceptChecked(operation);
    if (isOwnPart(group, part, view, counts))
      return ownPart(group, verb, part, view!, counts, joins, operationOf);
    throw group.error(fault);
  }
  const side = joins ? 'output' : 'input';
  const list = allocPacked(listOf(group, verb, side, whole));
  // If only the root has the list, the other ranks cannot know that its parts differ.
  const isEverywhere = verb === 'allGather' || verb === 'reduceScatter';
  const counts = countsOf(
    sides.counts ?? (isEverywhere ? list.members.map(({ count }) => count) : undefined),
  );
  const operation = operationOf(part, list.whole, counts, group.seq, 0);
  checkList(group, verb, side, list, counts, part.count);
  group.check(operation);
  if (joins) group.checkApart(verb, [{ name: 'output', views: list.members, isWritten: true }]);
  group.tell(verb, joins ? list.members : [part]);
  group.acceptTold(operation);
  if (joins) return { operations: [operation], finish: () => unpack(list) };
  pack(list);
  return operation;
}

/** Returns whether `part` is this rank's part of the whole itself, in host memory. */
function isOwnPart(group: Admission, part: BufferView, whole: BufferView | null, counts: Counts): boolean {
  const [own, all] = [part.host, whole?.host];
  if (!own || !all || own.buffer !== all.buffer || part.count === 0) return false;
  const before = counts?.slice(0, group.rank).reduce((sum, count) => sum + count, 0);
  const from = (before ?? group.rank * part.count) * byteSize(part.dtype);
  return own.byteOffset === all.byteOffset + from && own.byteLength <= all.byteLength - from;
}

/**
 * Returns the call whose part is this rank's part of the whole, as NCCL allows. The operation uses a copy of the part:
 * a backend may write one of its buffers while it still reads the other.
 */
function ownPart(
  group: Admission,
  verb: CollectiveOperation['verb'],
  part: BufferView,
  whole: BufferView,
  counts: Counts,
  joins: boolean,
  operationOf: OperationOf,
): Call<void> {
  const copy = allocHost(part.count, part.dtype);
  const operation = operationOf(copy, whole, counts, group.seq, 0);
  group.check(operation);
  group.tell(verb, [joins ? whole : part]);
  if (joins) elementsOf(copy).set(elementsOf(part) as never);
  const finish = () => {
    if (!joins) elementsOf(part).set(elementsOf(copy) as never);
  };
  return { operations: [group.acceptTold(operation)], finish };
}

/** Checks the counts before countsOf(), which drops them if they are all equal. */
function checkCounts(
  group: Admission,
  verb: CollectiveOperation['verb'],
  side: 'input' | 'output',
  counts: readonly number[] | undefined,
  partCount: number,
): void {
  const own = counts?.[group.rank] ?? partCount;
  const fault =
    countsFault(group, verb, 'counts', counts ?? null) ??
    (own === partCount ? null : wrongCount(verb, side, own, partCount));
  if (fault !== null) throw group.error(fault);
}

/** Returns null if all counts are equal. Typed arrays, which JavaScript may pass, become arrays, as backends expect. */
function countsOf(counts: readonly number[] | undefined): Counts {
  if (!counts?.some((count) => count !== counts[0])) return null;
  return Array.isArray(counts) ? counts : Array.from(counts);
}

function checkList(
  group: Admission,
  verb: string,
  side: 'input' | 'output',
  { members }: Packed,
  counts: Counts,
  partCount: number,
): void {
  const expectedOf = (rank: number) => counts?.[rank] ?? partCount;
  const wrong = members.findIndex(({ count }, rank) => count !== expectedOf(rank));
  if (wrong < 0) return;
  throw group.error(wrongListPart(verb, side, wrong, expectedOf(wrong), members[wrong]!.count));
}

function many(
  group: Admission,
  verb: CollectiveOperation['verb'],
  { whole, joins, counts }: Sides,
  list: Parameters<typeof viewsOf>[0],
  operationOf: OperationOf,
): Call<void> {
  if (counts !== undefined) throw group.error(countsOfMany(verb));
  const parts = viewsOf(list, verb);
  if (whole !== null && !isList(whole) && parts.length !== 1)
    throw group.error(listAndBuffer(verb, joins ? 'input' : 'output', group.size));
  const wholes = whole === null ? null : viewsOf(isList(whole) ? whole : [whole], verb);
  const roles = [
    { name: joins ? 'input' : 'output', views: parts, blocks: 1, isRead: joins, isWritten: !joins },
    wholes && {
      name: joins ? 'output' : 'input',
      views: wholes,
      blocks: group.size,
      isRead: !joins,
      isWritten: joins,
    },
  ];
  return bundled(group, verb, parts, roles, ([part, whole], seq, packing) =>
    operationOf(part as BufferView, whole ?? null, null, seq, packing),
  );
}
