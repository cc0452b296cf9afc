// A barrier in which every rank hears of every other directly. So at the deadline each knows all that are missing,
// where a fast barrier knows only those that it has to hear of.
import type { AllToAll } from '../backend.ts';
import { asBuffer } from '../group/buffer.ts';
import type { Calls } from '../group/calls.ts';
import { checkOptions } from '../options/known-options.ts';
import type { CollectiveOptions } from '../options/options.ts';

export function monitoredBarrier(calls: Calls, options: CollectiveOptions): AllToAll {
  checkOptions(calls, 'monitoredBarrier', options);
  const { timeoutMs = calls.timeoutMs, label } = options;
  const { seq, size } = calls;
  const ones = new Array<number>(size).fill(1);
  return calls.accept({
    verb: 'allToAll',
    seq,
    timeoutMs,
    packing: 1, // no allToAll of the caller's
    label,
    input: asBuffer(new Uint8Array(size)),
    output: asBuffer(new Uint8Array(size)),
    sendCounts: ones,
    recvCounts: ones,
  });
}
