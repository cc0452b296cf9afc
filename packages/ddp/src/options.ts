import type { Group } from '@ringwise/collectives';
import { invalidArgument } from './errors.ts';
import type { PlanLimits } from './plan.ts';
import type { UnusedPolicy } from './reducer.ts';

export interface DdpOptions extends Partial<PlanLimits> {
  readonly group: Group;
  /**
   * A parameter that got no gradient in a backward: 'error' (default) throws at the end of that backward and aborts
   * the group; 'zero' lets it count as what its gradient holds, zero if nothing, and gives it the average.
   */
  readonly unused?: UnusedPolicy;
}

export const defaultBucketBytes = 25 * 2 ** 20;
const defaultFirstBucketBytes = 2 ** 20;

/** Fills in the defaults and checks the rest. */
export function optionsOf(options: DdpOptions): Required<DdpOptions> {
  const { group, unused = 'error', bucketBytes = defaultBucketBytes } = options;
  const { firstBucketBytes = Math.min(defaultFirstBucketBytes, bucketBytes) } = options;
  if (typeof group?.allReduce !== 'function')
    throw invalidArgument('ddp', 'ddp(model, { group })', 'no group');
  if (unused !== 'error' && unused !== 'zero') {
    throw invalidArgument('ddp: unused', "'error' or 'zero'", String(unused));
  }
  for (const [name, bytes] of Object.entries({ bucketBytes, firstBucketBytes })) {
    if (!(bytes > 0)) throw invalidArgument(`ddp: ${name}`, 'a positive number of bytes', String(bytes));
  }
  return { group, unused, bucketBytes, firstBucketBytes };
}
