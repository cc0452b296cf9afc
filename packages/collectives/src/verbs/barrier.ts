// barrier: every rank waits until all ranks have called it.
import type { Barrier } from '../backend.ts';
import type { Admission } from '../group/admission.ts';
import { checkOptions } from '../options/known-options.ts';
import type { CollectiveOptions } from '../options/options.ts';

export function barrier(group: Admission, options: CollectiveOptions): Barrier {
  checkOptions(group, 'barrier', options);
  const { timeoutMs = group.timeoutMs, label } = options;
  return group.accept({ verb: 'barrier', seq: group.seq, timeoutMs, packing: 0, label });
}
