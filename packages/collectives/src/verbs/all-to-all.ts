// allToAll: every rank sends a part to each rank. Both sides are one buffer each, or both are lists of parts.
import type { AllToAll } from '../backend.ts';
import { countsOfLists, oneList } from '../errors.ts';
import type { Admission } from '../group/admission.ts';
import { asBuffer, type BufferView } from '../group/buffer.ts';
import { allocPacked, type Packed, pack, unpack } from '../group/pack.ts';
import type { Call } from '../group/steps.ts';
import { checkOptions } from '../options/known-options.ts';
import type { AllToAllOptions, Buffers } from '../options/options.ts';
import { isList, listOf } from './list.ts';

type Counts = readonly number[] | null;

export function allToAll(group: Admission, from: Buffers, to: Buffers, options: AllToAllOptions): Call<void> {
  checkOptions(group, 'allToAll', options);
  const { timeoutMs = group.timeoutMs, label, sendCounts = null, recvCounts = null } = options;
  // Spreading an object of the common members takes several µs with Node 20, more than a small exchange.
  const operationOf = (
    input: BufferView,
    output: BufferView,
    sendCounts: Counts,
    recvCounts: Counts,
  ): AllToAll => {
    const { seq } = group;
    return { verb: 'allToAll', seq, timeoutMs, packing: 0, label, input, output, sendCounts, recvCounts };
  };
  if (!isList(from) && !isList(to)) {
    const input = asBuffer(from, 'allToAll');
    return group.accept(operationOf(input, asBuffer(to, 'allToAll'), sendCounts, recvCounts));
  }
  if (!isList(from) || !isList(to)) throw group.error(oneList('allToAll'));
  if (sendCounts !== null || recvCounts !== null) throw group.error(countsOfLists('allToAll'));
  const input = allocPacked(listOf(group, 'allToAll', 'input', from));
  const output = allocPacked(listOf(group, 'allToAll', 'output', to));
  const operation = operationOf(input.whole, output.whole, lengthsOf(input), lengthsOf(output));
  group.check(operation);
  group.checkApart('allToAll', [{ name: 'output', views: output.members, isWritten: true }]);
  group.tell('allToAll', output.members);
  group.acceptTold(operation);
  pack(input);
  return { operations: [operation], finish: () => unpack(output) };
}

function lengthsOf({ members }: Packed): number[] {
  return members.map(({ count }) => count);
}
