// Scenarios with known answers: every verb, dtype, op and many counts, on memory with odd offsets and guards.
import type { ReduceOp } from '../backend.ts';
import { type DType, dtypes } from '../dtype.ts';
import type { Group, ReduceOptions } from '../group.ts';
import { reduceOps } from '../reduce-ops.ts';
import { factorOf, firstWrong, type Guarded, guarded, inputPattern, reducedPattern } from './inputs.ts';

/** 'sync' calls the Sync twins. */
export type Mode = 'async' | 'sync';

/** What a scenario with many checks found. */
export interface Report {
  checks: number;
  /** One sentence each. */
  readonly faults: string[];
}

const counts = [0, 1, 2, 3, 7, 64, 1000];
const largeCount = 100_003;
const partCount = 25_001;

/** allReduce and reduceScatter: every op on every dtype that the backend has. */
export async function exactReductions(group: Group, mode: Mode): Promise<Report> {
  const report: Report = { checks: 0, faults: [] };
  for (const dtype of dtypes) {
    for (const op of reduceOps) {
      if (!group.supports.reduces(op, dtype)) continue;
      for (const count of counts) {
        await checkAllReduce(group, mode, dtype, op, count, report);
        await checkReduceScatter(group, mode, dtype, op, count, report);
      }
      if (dtype !== 'float32' && op !== 'sum') continue;
      await checkAllReduce(group, mode, dtype, op, largeCount, report);
      await checkReduceScatter(group, mode, dtype, op, partCount, report);
    }
  }
  return report;
}

/** broadcast from every root, and allGather, of every dtype. */
export async function exactMoves(group: Group, mode: Mode): Promise<Report> {
  const report: Report = { checks: 0, faults: [] };
  for (const dtype of dtypes) {
    const isLarge = dtype === 'float32' || dtype === 'int8';
    for (const count of isLarge ? [...counts, largeCount] : counts) {
      for (let root = 0; root < group.size; root++)
        await checkBroadcast(group, mode, dtype, root, count, report);
      await checkAllGather(group, mode, dtype, count, report);
    }
  }
  return report;
}

async function checkAllReduce(
  group: Group,
  mode: Mode,
  dtype: DType,
  op: ReduceOp,
  count: number,
  report: Report,
) {
  const { rank, size } = group;
  const buffer = guarded(dtype, count, inputPattern(op, dtype, rank, size));
  const options = reduceOptions(op, rank);
  if (mode === 'sync') group.allReduceSync(buffer.like, options);
  else await group.allReduce(buffer.like, options);
  const wrong = firstWrong(buffer.elements, reducedPattern(op, dtype, size));
  note(report, `allReduce ${op} ${count} × ${dtype}`, wrong, buffer);
}

async function checkReduceScatter(
  group: Group,
  mode: Mode,
  dtype: DType,
  op: ReduceOp,
  count: number,
  report: Report,
) {
  const { rank, size } = group;
  const pattern = inputPattern(op, dtype, rank, size);
  const input = guarded(dtype, count * size, pattern);
  const output = guarded(dtype, count);
  const options = reduceOptions(op, rank);
  if (mode === 'sync') group.reduceScatterSync(input.like, output.like, options);
  else await group.reduceScatter(input.like, output.like, options);
  const what = `reduceScatter ${op} ${count} × ${dtype}`;
  note(report, what, firstWrong(output.elements, reducedPattern(op, dtype, size), rank * count), output);
  note(report, `input of ${what}`, firstWrong(input.elements, pattern), input);
}

async function checkBroadcast(
  group: Group,
  mode: Mode,
  dtype: DType,
  root: number,
  count: number,
  report: Report,
) {
  const { rank, size } = group;
  const buffer = guarded(dtype, count, inputPattern('move', dtype, rank, size));
  if (mode === 'sync') group.broadcastSync(buffer.like, { root });
  else await group.broadcast(buffer.like, { root });
  const wrong = firstWrong(buffer.elements, inputPattern('move', dtype, root, size));
  note(report, `broadcast ${count} × ${dtype} from rank ${root}`, wrong, buffer);
}

async function checkAllGather(group: Group, mode: Mode, dtype: DType, count: number, report: Report) {
  const { rank, size } = group;
  const pattern = inputPattern('move', dtype, rank, size);
  const input = guarded(dtype, count, pattern);
  const output = guarded(dtype, count * size);
  if (mode === 'sync') group.allGatherSync(input.like, output.like);
  else await group.allGather(input.like, output.like);
  for (let from = 0; from < size; from++) {
    const part = output.elements.subarray(from * count, (from + 1) * count);
    const wrong = firstWrong(part, inputPattern('move', dtype, from, size));
    note(report, `part ${from} of allGather ${count} × ${dtype}`, wrong, output);
  }
  note(report, `input of allGather ${count} × ${dtype}`, firstWrong(input.elements, pattern), input);
}

/**
 * Each rank sends to the next and receives from the one before, all messages at once. The Sync calls go around the
 * ring sender by sender instead, because a Sync send may wait for its receiver.
 */
export async function exactMessages(group: Group, mode: Mode): Promise<Report> {
  const report: Report = { checks: 0, faults: [] };
  const { rank, size } = group;
  if (size === 1) return report;
  const next = (rank + 1) % size;
  const previous = (rank + size - 1) % size;
  const lengths = [0, 1, 5, 1000, 70_001];
  for (const dtype of ['float32', 'int8', 'bfloat16'] as const) {
    const out = lengths.map((count) => guarded(dtype, count, inputPattern('move', dtype, rank, size)));
    const back = lengths.map((count) => guarded(dtype, count));
    if (mode === 'async') {
      const sends = out.map(({ like }) => group.send(like, next));
      const recvs = back.map(({ like }) => group.recv(like, previous));
      await Promise.all([...sends, ...recvs]);
    } else {
      for (let sender = 0; sender < size; sender++) {
        for (const i of lengths.keys()) {
          if (rank === sender) group.sendSync((out[i] as Guarded).like, next);
          if (previous === sender) group.recvSync((back[i] as Guarded).like, sender);
        }
      }
    }
    const expected = inputPattern('move', dtype, previous, size);
    for (const buffer of back) {
      const what = `recv ${buffer.elements.length} × ${dtype} from rank ${previous}`;
      note(report, what, firstWrong(buffer.elements, expected), buffer);
    }
  }
  return report;
}

function reduceOptions(op: ReduceOp, rank: number): ReduceOptions {
  return op === 'premulSum' ? { op, factor: factorOf(rank) } : { op };
}

function note(report: Report, what: string, wrong: number, { elements, isIntact }: Guarded): void {
  report.checks++;
  if (report.faults.length >= 10) return;
  if (wrong >= 0) report.faults.push(`${what}: element ${wrong} is ${elements[wrong]}`);
  if (!isIntact()) report.faults.push(`${what}: wrote outside of the buffer`);
}
