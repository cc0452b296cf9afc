// allReduce, reduce and reduceScatter whose result does not depend on how the addends are distributed to
// ranks; see reproducible/grid.ts. A backend whose ranks read each other's buffers does it in one operation, if each
// rank has one addend per element. Else it takes two: the maximum exponent of every element, then a sum of integers.
import type { AllReduce, Reduce, ReduceScatter } from '../backend.ts';
import { dtypes } from '../dtype.ts';
import {
  contributionsNotReproducible,
  dtypesDiffer,
  notReproducible,
  reproducibleList,
  reproducibleOnDevice,
  tooManyAddends,
  wrongCount,
} from '../errors.ts';
import type { Admission } from '../group/admission.ts';
import { asBuffer, type BufferView } from '../group/buffer.ts';
import { digestOf } from '../group/pack.ts';
import type { Call, EarlierStep } from '../group/steps.ts';
import type { Buffers, ReduceOptions } from '../options/options.ts';
import { reduceOps } from '../reduce-ops.ts';
import { maxAddends, type SummableDType, summableDtypes, wordsOf } from '../reproducible/grid.ts';
import { GridSum } from '../reproducible/grid-sum.ts';
import { isList } from './list.ts';

type Reduction = AllReduce | Reduce | ReduceScatter;

export function isReproducible({ reproducible, contributions }: ReduceOptions): boolean {
  return reproducible === true || contributions !== undefined;
}

/** Returns whether the backend does the reduction in one operation. */
export function isOneOperation(group: Admission, verb: Reduction['verb'], options: ReduceOptions): boolean {
  return options.reproducible === true && options.contributions === undefined && group.reproduces(verb);
}

/** Returns the call of a reproducible reduction. `plain` is the operation that would be used otherwise. */
export function reproducibleReduce(
  group: Admission,
  plain: AllReduce | Reduce,
  { contributions, reproducible }: ReduceOptions,
): Call<void> {
  const { verb, buffer } = plain;
  if (reproducible === false) throw group.error(contributionsNotReproducible(verb));
  group.check(plain);
  if (plain.reproducible) {
    checkReproducible(group, plain, buffer);
    return group.acceptChecked(plain);
  }
  const inputs = contributions?.map((contribution) => asBuffer(contribution, verb)) ?? [buffer];
  for (const { dtype, count } of inputs) {
    if (dtype !== buffer.dtype) throw group.error(dtypesDiffer(verb, dtype, buffer.dtype));
    if (count !== buffer.count) throw group.error(wrongCount(verb, 'input', buffer.count, count));
  }
  const grid = gridOf(group, plain, inputs, buffer, [buffer.count]);
  const hasResult = verb === 'allReduce' || plain.root === group.rank;
  const second = { ...plain, op: 'sum', buffer: grid.words } as const;
  const result = hasResult ? ([0, buffer] as const) : null;
  return steps(group, plain, grid, second, grid.words, result, contributions !== undefined);
}

export function reproducibleReduceScatter(
  group: Admission,
  from: Buffers | null,
  to: Buffers,
  counts: readonly number[] | null,
  options: ReduceOptions,
): Call<void> {
  const { op = 'sum', factor = 1, contributions, label, timeoutMs = group.timeoutMs } = options;
  const verb = 'reduceScatter';
  if (options.reproducible === false) throw group.error(contributionsNotReproducible(verb));
  if (isList(to) || (from !== null && isList(from))) throw group.error(reproducibleList(verb));
  const output = asBuffer(to, verb);
  const inputs = (contributions ?? [from as never]).map((input) => asBuffer(input, verb));
  if (isOneOperation(group, verb, options)) {
    // No spread: that makes an object that takes microseconds.
    const operation: ReduceScatter = {
      verb,
      seq: group.seq,
      timeoutMs,
      packing: 0,
      label,
      input: inputs[0]!,
      output,
      counts,
      op,
      factor,
      reproducible: true,
    };
    group.check(operation);
    checkReproducible(group, operation, output, inputs);
    return group.acceptChecked(operation);
  }
  const blocks = counts ?? new Array<number>(group.size).fill(output.count);
  const all = blocks.reduce((sum, count) => sum + count, 0);
  const common = { verb, seq: group.seq, timeoutMs, packing: 0, label, output, counts, op, factor } as const;
  const plain: ReduceScatter = { ...common, input: { ...output, count: all, host: new Uint8Array() } };
  for (const input of [plain.input, ...inputs]) group.check({ ...plain, input });
  const grid = gridOf(group, plain, inputs, output, blocks);
  const sums = group.scratch.take(wordsOf(output.dtype, output.count) + 1, 'int64');
  const lengths = counts?.map((count) => wordsOf(output.dtype, count) + 1) ?? null;
  const second: ReduceScatter = { ...plain, op: 'sum', input: grid.words, output: sums, counts: lengths };
  return steps(group, plain, grid, second, sums, [group.rank, output], contributions !== undefined);
}

/** Returns the dtype. Throws if the reduction has no reproducible form, for these buffers of one dtype. */
function checkReproducible(
  group: Admission,
  { verb, op }: Reduction,
  output: BufferView,
  inputs: readonly BufferView[] = [],
): SummableDType {
  const { dtype } = output;
  if ((op !== 'sum' && op !== 'avg') || !summableDtypes.includes(dtype as SummableDType))
    throw group.error(notReproducible(verb, op, dtype, summableDtypes));
  if (output.host === null || inputs.some(({ host }) => host === null))
    throw group.error(reproducibleOnDevice(verb));
  return dtype as SummableDType;
}

function gridOf(
  group: Admission,
  plain: Reduction,
  inputs: readonly BufferView[],
  output: BufferView,
  blocks: readonly number[],
): GridSum {
  return new GridSum(checkReproducible(group, plain, output, inputs), inputs, blocks, group.scratch);
}

/**
 * Returns the two operations as steps. `second` reduces `grid.words` to `sums`. `result` has the block of `grid` whose
 * sums these are, and the buffer to which they are rounded; it is null on ranks that get no result.
 */
function steps(
  group: Admission,
  { verb, op, seq, timeoutMs, ...plain }: Reduction,
  grid: GridSum,
  second: Reduction,
  sums: BufferView,
  result: readonly [block: number, output: BufferView] | null,
  hasContributions: boolean,
): EarlierStep<void> {
  // Without the digest, the operations would be equal for all dtypes of up to 32 bits and for sum and avg, and the
  // first one for all verbs and roots, so mismatches would stay unnoticed. Ranks with contributions and ranks without
  // would have different operations on backends that run reproducible reductions themselves, so they differ on all.
  const output = 'output' in plain ? plain.output : plain.buffer;
  const root = 'root' in plain ? plain.root : 0;
  const counts = 'counts' in plain ? (plain.counts ?? []) : [];
  const numbers = [verb.length, dtypes.indexOf(output.dtype), reduceOps.indexOf(op), root];
  const kind = [...numbers, Number(hasContributions), ...counts];
  const common = { timeoutMs, packing: digestOf(kind), label: plain.label, factor: 1 };
  group.check(second);
  group.tell(verb, result === null ? [] : [result[1]]);
  const first = group.acceptTold<AllReduce>({
    ...common,
    verb: 'allReduce',
    seq,
    op: 'max',
    buffer: grid.exponents,
    wire: 'full',
    residual: null,
  });
  const operation = { ...second, ...common, seq: group.reserve() };
  grid.raise();
  const more = () => {
    grid.add();
    return { operations: [operation], finish };
  };
  const finish = () => {
    const addends = result === null ? 0 : grid.finish(...result, sums, op as 'sum' | 'avg', maxAddends);
    for (const view of new Set([sums, grid.words, grid.exponents])) group.scratch.give(view);
    if (addends > maxAddends) throw group.error(tooManyAddends(verb, addends, maxAddends));
  };
  return { operations: [first], more };
}
