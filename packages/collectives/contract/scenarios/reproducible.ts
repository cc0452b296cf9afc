// Scenarios of reproducible reductions of eight shards that are distributed to the ranks in several ways. The
// expected result is what a single rank computes from all shards.
import { createHash } from 'node:crypto';
import { toBfloat16, toFloat16 } from '../../src/backends/arithmetic/narrow-floats.ts';
import { allocHost, asBuffer, type BufferView, elementsOf } from '../../src/group/buffer.ts';
import type { Group } from '../../src/group/group.ts';
import { maxAddends, type SummableDType, summableDtypes } from '../../src/reproducible/grid.ts';
import { GridSum } from '../../src/reproducible/grid-sum.ts';
import { Scratch } from '../../src/reproducible/scratch.ts';
import { randomFloats } from '../inputs.ts';
import { invoke, type Mode } from '../invoke.ts';
import { expect, newReport, type Report } from '../report.ts';

const shardCount = 8;

/**
 * Returns numbers of many magnitudes that depend only on `seed`. Some are zero, and some shards cancel each
 * other.
 */
function shard(dtype: SummableDType, seed: number, count: number): BufferView {
  const view = allocHost(count, dtype);
  const elements = elementsOf(view);
  const random = randomFloats((seed >> 1) + 1);
  const encode = { float16: toFloat16, bfloat16: toBfloat16, float32: null, float64: null }[dtype];
  for (let i = 0; i < count; i++) {
    const value = random() * 2 ** Math.round(random() * 12) * (i % 5 === 0 && seed % 2 === 1 ? -1 : 1);
    const kept = i % 17 === 0 ? 0 : i % 3 === 0 ? value * (1 + seed / 16) : value;
    elements[i] = encode === null ? kept : encode(kept);
  }
  return view;
}

/** Returns the bytes that a single rank computes from all inputs. */
function expected(dtype: SummableDType, inputs: readonly BufferView[], op: 'sum' | 'avg'): Uint8Array {
  const count = inputs[0]?.count ?? 0;
  const grid = new GridSum(dtype, inputs, [count], new Scratch(allocHost));
  grid.raise();
  grid.add();
  const output = allocHost(count, dtype);
  grid.finish(0, output, grid.words, op, maxAddends);
  return bytesOf(output);
}

export async function reproducibleSums(group: Group, mode: Mode): Promise<Report> {
  const report = newReport();
  for (const dtype of summableDtypes) {
    for (const op of ['sum', 'avg'] as const) {
      await checkDealt(group, mode, dtype, op, report);
      await checkOneEach(group, mode, dtype, op, report);
      // The board has one algorithm for small buffers and another for large ones.
      await checkMemory(group, mode, dtype, op, op === 'sum' ? 300 : 5_001, report);
    }
  }
  return report;
}

/** Tests shards as contributions: to all ranks, to a root, in parts, and in two pieces. */
async function checkDealt(group: Group, mode: Mode, dtype: SummableDType, op: 'sum' | 'avg', report: Report) {
  const { rank, size } = group;
  const count = 12 * size;
  const shards = Array.from({ length: shardCount }, (_, n) => shard(dtype, n, count));
  const right = expected(dtype, shards, op);
  const check = (what: string, found: Uint8Array, from = 0) => {
    const isRight = Buffer.compare(found, right.subarray(from, from + found.length)) === 0;
    expect(report, isRight, `${what} ${op} of ${dtype} differs from that of one rank`);
  };
  for (let turn = 0; turn < 3; turn++) {
    const mine = shards.filter((_, n) => (n * 5 + turn) % size === rank).map((view) => likeOf(view));
    if (turn === 1) mine.reverse();
    const result = allocHost(count, dtype);
    await invoke(group, mode, 'allReduce', likeOf(result), { op, contributions: mine });
    check('allReduce', bytesOf(result));
    const root = turn % size;
    const atRoot = allocHost(count, dtype);
    await invoke(group, mode, 'reduce', likeOf(atRoot), { op, root, contributions: mine });
    if (rank === root) check('reduce', bytesOf(atRoot));
    const part = allocHost(12, dtype);
    await invoke(group, mode, 'reduceScatter', null, likeOf(part), { op, contributions: mine });
    check('reduceScatter', bytesOf(part), rank * bytesOf(part).length);
    const pieces = allocHost(count, dtype);
    for (const [from, to] of [
      [5, count],
      [0, 5],
    ] as const) {
      const contributions = mine.map((like) => likeOf(like, from, to));
      await invoke(group, mode, 'allReduce', likeOf(pieces, from, to), { op, contributions });
    }
    check('allReduce in pieces', bytesOf(pieces));
  }
}

/** Tests one shard on each rank: in place, and in parts of different lengths. */
async function checkOneEach(
  group: Group,
  mode: Mode,
  dtype: SummableDType,
  op: 'sum' | 'avg',
  report: Report,
) {
  const { rank, size } = group;
  const counts = Array.from({ length: size }, (_, n) => (n * 7) % 5);
  const count = counts.reduce((sum, part) => sum + part, 0);
  const shards = Array.from({ length: size }, (_, n) => shard(dtype, n, count));
  const right = expected(dtype, shards, op);
  const mine = shard(dtype, rank, count);
  const part = allocHost(counts[rank]!, dtype);
  const reproducible = true;
  await invoke(group, mode, 'reduceScatter', likeOf(mine), likeOf(part), { op, counts, reproducible });
  await invoke(group, mode, 'allReduce', likeOf(mine), { op, reproducible });
  const isRight = Buffer.compare(bytesOf(mine), right) === 0;
  expect(report, isRight, `allReduce ${op} of ${dtype} in place differs from that of one rank`);
  const start = counts.slice(0, rank).reduce((sum, n) => sum + n, 0) * (right.length / count);
  const own = bytesOf(part);
  const isOwn = Buffer.compare(own, right.subarray(start, start + own.length)) === 0;
  expect(report, isOwn, `reduceScatter ${op} of ${dtype} in uneven parts differs from that of one rank`);
}

/**
 * Tests one shard on each rank in memory that other ranks may read in place, on all ranks or some, and in memory of
 * each rank's own.
 */
async function checkMemory(
  group: Group,
  mode: Mode,
  dtype: SummableDType,
  op: 'sum' | 'avg',
  count: number,
  report: Report,
) {
  const { rank, size } = group;
  const shards = Array.from({ length: size }, (_, n) => shard(dtype, n + count, count * size));
  const right = expected(dtype, shards, op);
  const own = elementsOf(shards[rank] as BufferView & { readonly dtype: SummableDType });
  const reproducible = true;
  const root = size - 1;
  for (const [where, isShared] of [
    ['own memory', false],
    ['shared memory', true],
    ['memory of both kinds', rank % 2 === 0],
  ] as const) {
    const alloc = (length: number) =>
      isShared ? asBuffer(group.alloc(length, dtype)) : allocHost(length, dtype);
    const filled = () => {
      const data = elementsOf(alloc(count * size) as BufferView & { readonly dtype: SummableDType });
      data.set(own as never);
      return { data, dtype };
    };
    const check = (verb: string, data: Like['data'], from = 0) => {
      const found = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      const isRight = Buffer.compare(found, right.subarray(from, from + found.length)) === 0;
      const what = `${verb} ${op} of ${count * size} × ${dtype} in ${where}`;
      expect(report, isRight, `${what} differs from that of one rank`);
    };
    const [all, atRoot, input, part] = [filled(), filled(), filled(), allocHost(count, dtype)];
    await invoke(group, mode, 'allReduce', all, { op, reproducible });
    check('allReduce', all.data);
    await invoke(group, mode, 'reduce', atRoot, { op, root, reproducible });
    if (rank === root) check('reduce', atRoot.data);
    await invoke(group, mode, 'reduceScatter', input, likeOf(part), { op, reproducible });
    check('reduceScatter', likeOf(part).data, rank * bytesOf(part).length);
  }
}

/** Returns digests of reductions of the same shards, which must be equal for all numbers of ranks. */
export async function reproducibleDigests(group: Group): Promise<string[]> {
  const digests: string[] = [];
  for (const dtype of summableDtypes) {
    for (const count of [1, 1000, 20_003]) {
      const shards = Array.from({ length: shardCount }, (_, n) => shard(dtype, n, count));
      const contributions = shards
        .filter((_, n) => n % group.size === group.rank)
        .map((view) => likeOf(view));
      const result = allocHost(count, dtype);
      await group.allReduce(likeOf(result), { contributions });
      digests.push(`${count} × ${dtype} ${createHash('sha256').update(bytesOf(result)).digest('hex')}`);
    }
  }
  return digests;
}

interface Like {
  readonly data: ReturnType<typeof elementsOf<SummableDType>>;
  readonly dtype: SummableDType;
}

function likeOf(view: BufferView | Like, from = 0, to = Number.POSITIVE_INFINITY): Like {
  const dtype = view.dtype as SummableDType;
  const data = 'data' in view ? view.data : elementsOf(view as BufferView & { dtype: SummableDType });
  return { data: data.subarray(from, Math.min(to, data.length)), dtype };
}

function bytesOf(view: BufferView): Uint8Array {
  const { buffer, byteOffset, byteLength } = elementsOf(view);
  return new Uint8Array(buffer, byteOffset, byteLength);
}
