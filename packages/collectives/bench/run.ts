// Runs the benchmark on this rank's group. For each size: checks the answers, measures, and checks again.

import { factorOf } from '../contract/inputs.ts';
import { byteSize, type DType } from '../src/dtype.ts';
import { allocHost, asBuffer, type BufferLike, type TypedArray } from '../src/group/buffer.ts';
import type { Group } from '../src/group/group.ts';
import { type Caller, measure, type Timing } from './measure.ts';
import { type BenchOptions, UsageError } from './options.ts';
import { type Contents, countWrong, fill, overwrite } from './patterns.ts';
import { partCounts } from './sizes.ts';
import { type BenchCall, partsOf, root } from './verbs.ts';

// No pattern has an element of these bytes, so elements that a call did not write are detected.
const notInAnyPart = 0x7b;

/** Result for one size. */
export interface Row extends Timing {
  /** Bytes of the whole vector. */
  readonly bytes: number;
  /** Elements of the whole vector. */
  readonly count: number;
  /** Number of wrong elements on all ranks. */
  readonly wrong: number;
  /** Algorithm that executed the operation; null if the backend does not report it. */
  readonly algorithm: string | null;
}

/** Tells whether the Sync form is measured. */
export function isSync({ form }: BenchOptions, group: Group): boolean {
  return form === 'auto' ? group.supports.sync : form === 'sync';
}

/** Returns the sizes of a run in bytes of the whole vector. */
export function sizesOf({ verb, sizes, dtype }: BenchOptions, ranks: number): number[] {
  const parts = partsOf(verb, ranks);
  if (parts === 0) return [0];
  return partCounts(sizes, parts, byteSize(dtype)).map((count) => count * parts * byteSize(dtype));
}

/**
 * Yields a row for each size, on every rank. Collective. Rank 0 calls `goOn` before each size; if it returns
 * false, all ranks end. `measured` makes the row of a size from a function that measures it once.
 */
export async function* run<Measured extends Row = Row>(
  group: Group,
  options: BenchOptions,
  goOn: () => boolean,
  measured: (once: () => Promise<Row>) => Promise<Measured> = (once) => once() as Promise<Measured>,
): AsyncGenerator<Measured> {
  const parts = partsOf(options.verb, group.size);
  const counts = parts === 0 ? [0] : partCounts(options.sizes, parts, byteSize(options.dtype));
  for (const [index, count] of counts.entries()) {
    const going = Uint8Array.of(goOn() ? 1 : 0);
    await group.broadcast(going);
    if (going[0] === 0) return;
    let isFirst = index === 0;
    yield await measured(() => {
      const row = runSize(group, options, count, parts, isFirst);
      isFirst = false;
      return row;
    });
  }
}

/** Runs one size; `count` is the number of elements in each part. */
async function runSize(
  group: Group,
  options: BenchOptions,
  count: number,
  parts: number,
  isFirst: boolean,
): Promise<Row> {
  const { verb, dtype, op } = options;
  const { rank, size } = group;
  const contents: Contents = { rank, size, op };
  const before = verb.input(contents);
  const after = verb.output(contents);
  const input = buffer(group, options, count * before.length);
  const output = verb.inPlace ? input : buffer(group, options, count * after.length);
  const caller = callerOf(group, options, input, output);

  const check = async () => {
    if (!verb.inPlace) overwrite(asBuffer(output), notInAnyPart);
    fill(asBuffer(input), before, contents);
    await caller(1);
    return countWrong(asBuffer(output), after, contents);
  };
  let wrong = await check();
  // Zeros stay zeros under every op, so that millions of reductions in place do not overflow to infinity.
  overwrite(asBuffer(input), 0);
  const timing = await measure(group, caller, options.seconds, isFirst);
  wrong += await check();
  const algorithm = group.lastAlgorithm;

  const total = Float64Array.of(wrong);
  await group.allReduce(total);
  const elements = count * parts;
  return { ...timing, bytes: elements * byteSize(dtype), count: elements, wrong: total[0]!, algorithm };
}

function callerOf(group: Group, options: BenchOptions, input: BufferLike, output: BufferLike): Caller {
  const { verb, op } = options;
  const call: BenchCall = {
    ...(verb.reduces && (op === 'premulSum' ? { op, factor: factorOf(group.rank) } : { op })),
    ...(verb.hasRoot && { root }),
  };
  if (isSync(options, group)) {
    return (calls) => {
      for (let i = 0; i < calls; i++) verb.sync(group, input, output, call);
    };
  }
  return async (calls) => {
    for (let i = 0; i < calls; i++) await verb.start(group, input, output, call);
  };
}

/** Returns a buffer as users have it: a typed array, or `{ data, dtype }` for types without one. */
function buffer(group: Group, { dtype, alloc }: BenchOptions, count: number): BufferLike {
  if (alloc) return group.alloc<DType>(count, dtype);
  const data = allocate(count, dtype);
  return asBuffer(data).dtype === dtype ? data : { data, dtype };
}

function allocate(count: number, dtype: DType): TypedArray {
  try {
    return allocHost(count, dtype).host as TypedArray;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const bytes = count * byteSize(dtype);
    const most = 'expected a --max for which there is memory, and which an array of Node.js can have';
    throw new UsageError(
      `ringwise bench: no array of ${bytes} bytes can be made: ${error.message}; ${most}.`,
    );
  }
}
