// A barrier in which every rank hears from every other rank directly. At the deadline each rank therefore
// knows all missing ranks, while a fast barrier knows only those that it exchanges messages with.
import type { AllToAll } from '../backend.ts';
import { type Failure, rankList } from '../errors.ts';
import type { Admission } from '../group/admission.ts';
import { asBuffer } from '../group/buffer.ts';
import { checkOptions } from '../options/known-options.ts';
import type { CollectiveOptions } from '../options/options.ts';

export function monitoredBarrier(group: Admission, options: CollectiveOptions): AllToAll {
  checkOptions(group, 'monitoredBarrier', options);
  const { timeoutMs = group.timeoutMs, label } = options;
  const { seq, size } = group;
  const ones = new Array<number>(size).fill(1);
  return group.accept({
    verb: 'allToAll',
    seq,
    timeoutMs,
    packing: 1, // distinguishes it from an allToAll of the caller
    label,
    input: asBuffer(new Uint8Array(size)),
    output: asBuffer(new Uint8Array(size)),
    sendCounts: ones,
    recvCounts: ones,
  });
}

/**
 * Returns the middle of the sentence for a failure of the exchange that implements the barrier: the ranks that did not
 * call the barrier in time. Returns the text of other failures unchanged.
 */
export function textOfMissingRanks({ code, peers, what }: Failure): string {
  const [, ms] = / within (\d+) ms/.exec(what) ?? [];
  if (code !== 'ERR_COLL_TIMEOUT' || ms === undefined || peers.length === 0) return what;
  const [, ...details] = what.split('; ');
  return [`${rankList(peers)} did not call monitoredBarrier() within ${ms} ms`, ...details].join('; ');
}
