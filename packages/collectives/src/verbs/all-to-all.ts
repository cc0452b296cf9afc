// allToAll: every rank sends a part to each rank. Both sides are one buffer each, or both are lists of parts.
import type { AllToAll } from '../backend.ts';
import { countsOfLists, oneList } from '../errors.ts';
import { asBuffer } from '../group/buffer.ts';
import type { Calls } from '../group/calls.ts';
import { allocPacked, type Packed, pack, unpack } from '../group/pack.ts';
import type { Call } from '../group/steps.ts';
import { checkOptions } from '../options/known-options.ts';
import type { AllToAllOptions, Buffers } from '../options/options.ts';
import { isList, listOf } from './list.ts';

export function allToAll(calls: Calls, from: Buffers, to: Buffers, options: AllToAllOptions): Call<void> {
  checkOptions(calls, 'allToAll', options);
  const { timeoutMs = calls.timeoutMs, label, sendCounts = null, recvCounts = null } = options;
  const common = { verb: 'allToAll', seq: calls.seq, timeoutMs, packing: 0, label } as const;
  if (!isList(from) && !isList(to)) {
    const [input, output] = [asBuffer(from, 'allToAll'), asBuffer(to, 'allToAll')];
    return calls.accept<AllToAll>({ ...common, input, output, sendCounts, recvCounts });
  }
  if (!isList(from) || !isList(to)) throw calls.error(oneList('allToAll'));
  if (sendCounts !== null || recvCounts !== null) throw calls.error(countsOfLists('allToAll'));
  const input = allocPacked(listOf(calls, 'allToAll', 'input', from));
  const output = allocPacked(listOf(calls, 'allToAll', 'output', to));
  const operation: AllToAll = {
    ...common,
    input: input.whole,
    output: output.whole,
    sendCounts: lengthsOf(input),
    recvCounts: lengthsOf(output),
  };
  calls.check(operation);
  calls.tell('allToAll', output.members);
  calls.acceptTold(operation);
  pack(input);
  return { operations: [operation], finish: () => unpack(output) };
}

function lengthsOf({ members }: Packed): number[] {
  return members.map(({ count }) => count);
}
