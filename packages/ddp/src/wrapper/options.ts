// The options of ddp(), their defaults and checks.
import type { Group } from '@ringwise/collectives';
import {
  camelCase,
  checkBoolean,
  checkGroup,
  checkOneOf,
  checkOptions,
  checkPositive,
  fromPyTorch,
  type OptionNames,
  shown,
} from '../check.ts';
import { badOptions, invalidArgument } from '../errors.ts';
import { type CommHook, checkHook, plainHook } from '../reducer/hook.ts';
import type { PlanLimits } from '../reducer/plan.ts';
import type { UnusedPolicy } from '../reducer/reducer.ts';

/** Options of ddp(). They must be equal on all ranks, which ddp() compares. */
export interface DdpOptions extends Partial<PlanLimits> {
  /** Group over whose ranks gradients are averaged. The caller closes it. */
  readonly group: Group;
  /**
   * Policy for a parameter that got no gradient in a backward. 'error' (default) throws at the end of that backward and
   * aborts the group. 'zero' averages its present gradient, or zeros if it has none, and writes the average to it.
   * 'skip' does the same, but a parameter that no rank has used ends without a gradient, so that the optimizer skips
   * it.
   */
  readonly unused?: UnusedPolicy;
  /**
   * Whether the buckets are laid out again after the first backward, in the order in which rank 0 got the
   * gradients. Default false: the reverse order of definition.
   */
  readonly rebuild?: boolean;
  /**
   * Promises that every backward reports each gradient as often as the first one did. With this, a gradient may be
   * reported several times in a backward; the first backward, which counts the reports, does not overlap with
   * communication. Default false.
   */
  readonly staticGraph?: boolean;
  /**
   * Whether every averaged backward also broadcasts rank 0's state buffers (running statistics). Default
   * true.
   */
  readonly broadcastBuffers?: boolean;
  /** Communication hook for full buckets. Default: plain averaging. */
  readonly hook?: CommHook;
}

/** The options with all defaults filled in. */
export type CheckedOptions = Required<DdpOptions>;

export const defaultBucketBytes = 25 * 2 ** 20;
const defaultFirstBucketBytes = 2 ** 20;

const names: OptionNames = {
  known: [
    'group',
    'bucketBytes',
    'firstBucketBytes',
    'unused',
    'rebuild',
    'staticGraph',
    'broadcastBuffers',
    'hook',
  ],
  renamed: fromPyTorch({
    process_group: 'group',
    bucket_cap_mb: 'bucketBytes',
    bucket_cap_mb_list: 'bucketBytes',
    find_unused_parameters: 'unused',
    skip_all_reduce_unused_params: 'unused',
    comm_hook: 'hook',
    forward_sync_buffers: 'broadcastBuffers',
  }),
};

/** Options of PyTorch that have no counterpart here, with the reason. */
const foreign: Readonly<Record<string, string>> = {
  gradient_as_bucket_view: 'gradients always lie in the buckets',
  init_sync: "ddp() always compares the models and gives all ranks rank 0's values",
  device_ids: 'parameters stay where they are: move the model by to() before',
  output_device: 'results stay where the model computes them',
  device_mesh: 'ranks are those of the group',
  dim: 'batches are not scattered',
  check_reduction: 'every reduction is checked',
  mixed_precision: 'use autocast of @ringwise/tensor',
};

/** Checks the options and fills in the defaults. */
export function optionsOf(options: DdpOptions): CheckedOptions {
  checkNames(options);
  const { group, unused = 'error', bucketBytes = defaultBucketBytes, hook = plainHook } = options;
  if (typeof group?.allReduce !== 'function') {
    const isPending = typeof (group as { then?: unknown } | undefined)?.then === 'function';
    const got = isPending ? 'a promise as group: await it, as in await init()' : 'no group';
    throw invalidArgument('ddp', 'ddp(model, { group })', got);
  }
  checkGroup('ddp', group);
  checkOneOf('ddp: unused', unused, ['error', 'zero', 'skip']);
  checkPositive('ddp: bucketBytes', bucketBytes, 'a positive number of bytes');
  const { firstBucketBytes = Math.min(defaultFirstBucketBytes, bucketBytes) } = options;
  checkPositive('ddp: firstBucketBytes', firstBucketBytes, 'a positive number of bytes');
  const { rebuild = false, staticGraph = false, broadcastBuffers = true } = options;
  for (const [name, value] of Object.entries({ rebuild, staticGraph, broadcastBuffers })) {
    checkBoolean(`ddp: ${name}`, value);
  }
  checkHook(hook);
  return { group, unused, bucketBytes, firstBucketBytes, rebuild, staticGraph, broadcastBuffers, hook };
}

function checkNames(options: unknown): void {
  if (typeof options !== 'object' || options === null || 'allReduce' in options) {
    const got = typeof options === 'object' && options !== null ? 'the group itself' : shown(options);
    throw invalidArgument('ddp', 'ddp(model, { group })', got);
  }
  for (const [name, why] of Object.entries(foreign)) {
    const used = [name, camelCase(name)].find((each) => Object.hasOwn(options, each));
    if (used !== undefined) throw badOptions('ddp', `no option '${used}': ${why}. Leave it out`);
  }
  checkOptions('ddp', options, names);
}
