// barrier: every rank waits until all ranks have called it.
import type { Barrier } from '../backend.ts';
import type { Calls } from '../group/calls.ts';
import { checkOptions } from '../options/known-options.ts';
import type { CollectiveOptions } from '../options/options.ts';

export function barrier(calls: Calls, options: CollectiveOptions): Barrier {
  checkOptions(calls, 'barrier', options);
  const { timeoutMs = calls.timeoutMs, label } = options;
  return calls.accept({ verb: 'barrier', seq: calls.seq, timeoutMs, packing: 0, label });
}
