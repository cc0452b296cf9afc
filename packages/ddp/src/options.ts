import type { Group } from '@ringwise/collectives';
import { invalidArgument } from './errors.ts';
import { type CommHook, plainHook } from './hook.ts';
import type { PlanLimits } from './plan.ts';
import type { UnusedPolicy } from './reducer.ts';

export interface DdpOptions extends Partial<PlanLimits> {
  readonly group: Group;
  /**
   * A parameter that got no gradient in a backward: 'error' (default) throws at the end of that backward and aborts
   * the group; 'zero' lets it count as what its gradient holds, zero if nothing, and gives it the average; 'skip' does
   * too, but where no rank has used it, it ends without a gradient, so that the optimizer passes it over.
   */
  readonly unused?: UnusedPolicy;
  /**
   * Whether the buckets are laid out anew after the first backward, in the order in which rank 0 got the gradients.
   * Default false: the reverse order of definition.
   */
  readonly rebuild?: boolean;
  /**
   * Promises that every backward reports each gradient as often as the first one, which is not overlapped. Then a gradient
   * may be reported several times in a backward. Default false.
   */
  readonly staticGraph?: boolean;
  /** Whether every averaged backward also gives all ranks rank 0's state buffers (running statistics). Default true. */
  readonly broadcastBuffers?: boolean;
  /** What is done with a full bucket. Default: averaged as it is. */
  readonly hook?: CommHook;
}

export const defaultBucketBytes = 25 * 2 ** 20;
const defaultFirstBucketBytes = 2 ** 20;

/** Fills in the defaults and checks the rest. */
export function optionsOf(options: DdpOptions): Required<DdpOptions> {
  const { group, unused = 'error', bucketBytes = defaultBucketBytes, hook = plainHook } = options;
  const { firstBucketBytes = Math.min(defaultFirstBucketBytes, bucketBytes) } = options;
  const { rebuild = false, staticGraph = false, broadcastBuffers = true } = options;
  if (typeof group?.allReduce !== 'function')
    throw invalidArgument('ddp', 'ddp(model, { group })', 'no group');
  if (!['error', 'zero', 'skip'].includes(unused)) {
    throw invalidArgument('ddp: unused', "'error', 'zero' or 'skip'", String(unused));
  }
  if (typeof hook !== 'function') throw invalidArgument('ddp: hook', 'a generator function', typeof hook);
  for (const [name, bytes] of Object.entries({ bucketBytes, firstBucketBytes })) {
    if (!(bytes > 0)) throw invalidArgument(`ddp: ${name}`, 'a positive number of bytes', String(bytes));
  }
  return { group, unused, bucketBytes, firstBucketBytes, rebuild, staticGraph, broadcastBuffers, hook };
}
