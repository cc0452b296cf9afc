// Plans of all verbs: what one rank sends to another is what the other expects.
import { expect, it } from 'vitest';
import type { CollectiveOperation } from '../../../../src/backend.ts';
import { type Plan, planOf, shortBytes } from '../../../../src/backends/tcp/plan.ts';
import { allocHost } from '../../../../src/group/buffer.ts';

const common = { seq: 0, timeoutMs: 1, packing: 0, label: undefined };
const memory = (count: number) => allocHost(count, 'float32');

type Make = (rank: number, size: number, count: number) => CollectiveOperation;
const verbs: Readonly<Record<string, Make>> = {
  allReduce: (_, __, count) => ({
    ...{ ...common, verb: 'allReduce', op: 'sum', factor: 1, wire: 'full' },
    ...{ residual: null, buffer: memory(count) },
  }),
  reduce: (_, size, count) => ({
    ...{ ...common, verb: 'reduce', op: 'sum', factor: 1, root: size - 1 },
    buffer: memory(count),
  }),
  reduceScatter: (rank, size, count) => {
    const counts = Array.from({ length: size }, (_, part) => count + part);
    const input = memory(counts.reduce((sum, part) => sum + part));
    return {
      ...common,
      verb: 'reduceScatter',
      op: 'sum',
      factor: 1,
      counts,
      input,
      output: memory(counts[rank]!),
    };
  },
  broadcast: (_, size, count) => ({ ...common, verb: 'broadcast', root: size - 1, buffer: memory(count) }),
  allGather: (_, size, count) => {
    return { ...common, verb: 'allGather', counts: null, input: memory(count), output: memory(size * count) };
  },
  gather: (rank, size, count) => {
    const output = rank === 0 ? memory(size * count) : null;
    return { ...common, verb: 'gather', root: 0, counts: null, input: memory(count), output };
  },
  scatter: (rank, size, count) => {
    const input = rank === 0 ? memory(size * count) : null;
    return { ...common, verb: 'scatter', root: 0, counts: null, input, output: memory(count) };
  },
  allToAll: (rank, size, count) => {
    const sendCounts = Array.from({ length: size }, (_, to) => count + rank * size + to);
    const recvCounts = Array.from({ length: size }, (_, from) => count + from * size + rank);
    const total = (counts: number[]) => memory(counts.reduce((sum, part) => sum + part));
    const [input, output] = [total(sendCounts), total(recvCounts)];
    return { ...common, verb: 'allToAll', sendCounts, recvCounts, input, output };
  },
  barrier: () => ({ ...common, verb: 'barrier' }),
};

/** Bytes of the first step that `to` expects from `from`. */
function expectedFirst({ combination, receives }: Plan, from: number): number {
  if (combination === null) return receives[from]!.length;
  return combination.terms.includes(from) ? 4 * combination.count : 0;
}

/** Bytes of results that `to` expects from `from`, and that `from` sends it. */
function results(plans: readonly Plan[], from: number, to: number): [number, number] {
  const { combination } = plans[from]!;
  const isSent = combination?.resultTo.includes(to) === true;
  return [
    plans[to]!.combination === null ? 0 : plans[to]!.receives[from]!.length,
    isSent ? 4 * combination.count : 0,
  ];
}

for (const [verb, make] of Object.entries(verbs)) {
  for (const size of [1, 2, 3, 5]) {
    it.each([0, 1, shortBytes / 4, 50_001])(`${verb} on ${size} ranks of %i elements`, (count) => {
      const plans = Array.from({ length: size }, (_, rank) => planOf(make(rank, size, count), rank, size));
      for (let from = 0; from < size; from++) {
        for (let to = 0; to < size; to++) {
          if (from === to) continue;
          expect([from, to, plans[from]!.sends[to]!.length]).toEqual([
            from,
            to,
            expectedFirst(plans[to]!, from),
          ]);
          const [expected, sent] = results(plans, from, to);
          expect([from, to, sent]).toEqual([from, to, expected]);
        }
      }
    });
  }
}
