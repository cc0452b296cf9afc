// The options of diloco(), their defaults and checks.
import type { Group } from '@ringwise/collectives';
import type { GradParam } from '@ringwise/ddp';
import { checkInteger, checkOptions, shown } from '../check.ts';
import { badOptions, invalidArgument } from '../errors.ts';
import type { Membership } from '../membership/membership.ts';
import { unknownOption } from '../option-names.ts';
import { delayTooLong, groupWithin, mixWithoutUse } from './errors.ts';

/** The members of an optimizer that diloco() uses. Those of @ringwise/tensor have them. */
export interface OuterOptimizer {
  /** Changes the global values by their gradients. */
  readonly step: () => void;
  /** Returns the state, for a snapshot. */
  readonly stateDict: () => object;
  /** Copies a state that stateDict() returned. */
  readonly loadStateDict: (state: never) => void;
}

/** The optimizer of the inner steps. */
export interface InnerOptimizer {
  /** Changes the parameters by their gradients. */
  readonly step: () => void;
}

/**
 * The type of the parameters that the outer optimizer gets: that of the model's own parameters() or, for a list of
 * parameters, GradParam.
 */
export type OuterParam<M> = M extends { readonly parameters: () => Iterable<infer P> } ? P : GradParam;

/** Makes the outer optimizer of one fragment over its global parameters. */
export type MakeOuter<M> = (params: OuterParam<M>[]) => OuterOptimizer;

/** Options of diloco(). They must be equal on all ranks, except `inner`, `group`, `within` and `membership`. */
export interface DilocoOptions<M = unknown> {
  /**
   * The ranks that average with each other. With `membership`, leave it out; the group is then that of the membership.
   */
  readonly group?: Group;
  /**
   * The membership of an elastic job: its members vote after every average, and step() continues by itself when members
   * are lost or join. Default: none; step() throws errors of the group, and the program calls change().
   */
  readonly membership?: Membership;
  /**
   * The optimizer of the inner steps, whose step() is called at the beginning of DiLoCo.step(). Default: the program
   * calls its own optimizer.
   */
  readonly inner?: InnerOptimizer;
  /** Number of inner steps from one average of a fragment to the next: H, such as 500. */
  readonly every: number;
  /**
   * Makes the optimizer that changes the global parameters, by the average of (global − local) as gradient, such as
   * `(params) => new SGD(params, { lr: 0.7, momentum: 0.9, nesterov: true })`. It is called once for each fragment.
   * 'average' sets them to the average of the local parameters (LocalSGD).
   */
  readonly outer: 'average' | MakeOuter<M>;
  /**
   * Ranks that average their gradients in every backward, by ddp(): 'host' for those of each host, or a subgroup of
   * the group. Default: each rank trains on its own.
   */
  readonly within?: 'host' | Group;
  /** Number of parts of the model that are averaged one after the other in a round. Default 1. */
  readonly fragments?: number;
  /**
   * Number of inner steps that run while an average is in flight; fewer than `every`. Default 0: step() waits for the
   * average.
   */
  readonly delay?: number;
  /**
   * Weight of the local parameters when the global ones arrive, from 0 up to, but not including, 1: local becomes mix ·
   * local + (1 − mix) · global. Default 0.
   */
  readonly mix?: number;
  /**
   * Type in which values are sent between hosts: see `wire` of allReduce(). 'int8' keeps its rounding errors and adds
   * them to the next average. Default 'full'.
   */
  readonly wire?: 'full' | 'bfloat16' | 'int8';
}

/** The options with all defaults filled in. */
export interface CheckedOptions<M> {
  readonly group: Group;
  readonly membership: Membership | null;
  readonly inner: InnerOptimizer | null;
  readonly every: number;
  readonly outer: 'average' | MakeOuter<M>;
  readonly within: 'host' | Group | null;
  readonly fragments: number;
  readonly delay: number;
  readonly mix: number;
  readonly wire: 'full' | 'bfloat16' | 'int8';
}

const names: readonly string[] = [
  ...['group', 'membership', 'inner', 'every', 'outer', 'within', 'fragments', 'delay', 'mix', 'wire'],
];

/** Names that torch and torchft have for the options. */
const renamed = {
  sync_every: 'every',
  syncEvery: 'every',
  period: 'every',
  inner_optimizer: 'inner',
  innerOptimizer: 'inner',
  outer_optimizer: 'outer',
  outerOptimizer: 'outer',
  fragment_sync_delay: 'delay',
  fragmentSyncDelay: 'delay',
  fragment_update_alpha: 'mix',
  fragmentUpdateAlpha: 'mix',
  process_group: 'group',
  manager: 'membership',
};

/** Checks the options and fills in the defaults. Throws ERR_ELASTIC_INVALID. */
export function optionsOf<M>(options: DilocoOptions<M>): CheckedOptions<M> {
  if (typeof options !== 'object' || options === null || 'allReduce' in options)
    throw invalidArgument('diloco', 'diloco(model, { group, every, outer })', shown(options));
  const fault = unknownOption(options, names, renamed);
  if (fault !== null) throw badOptions('diloco', fault);
  const { membership = null, inner = null, within = null, every, outer } = options;
  const group = options.group ?? membership?.group;
  const { fragments = 1, delay = 0, mix = 0, wire = 'full' } = options;
  checkGroup('group', group);
  if (membership !== null && membership.group !== group)
    throw invalidArgument(
      'diloco: group',
      "no group beside `membership`, or the membership's",
      'another one',
    );
  if (within !== null && within !== 'host') {
    checkGroup('within', within);
    if (membership !== null) throw groupWithin();
  }
  if (inner !== null && typeof inner?.step !== 'function')
    throw invalidArgument('diloco: inner', 'an optimizer with step()', shown(inner));
  if (outer !== 'average' && typeof outer !== 'function')
    throw invalidArgument(
      'diloco: outer',
      "'average', or a function such as (params) => new SGD(params, …)",
      shown(outer),
    );
  if (typeof outer === 'function' && /^class\b/.test(Function.prototype.toString.call(outer)))
    throw invalidArgument(
      'diloco: outer',
      'a function such as (params) => new SGD(params, …)',
      `the class ${outer.name}`,
    );
  checkInteger('diloco: every', every, 1);
  checkInteger('diloco: fragments', fragments, 1);
  checkInteger('diloco: delay', delay, 0);
  if (delay >= every) throw delayTooLong(delay, every);
  if (typeof mix !== 'number' || !(mix >= 0 && mix < 1)) throw mixWithoutUse(mix);
  if (!['full', 'bfloat16', 'int8'].includes(wire))
    throw invalidArgument('diloco: wire', "'full', 'bfloat16' or 'int8'", shown(wire));
  return { group: group as Group, membership, inner, every, outer, within, fragments, delay, mix, wire };
}

/** Throws unless `group` is a group. */
export function checkGroup(what: string, group: unknown, verb = 'diloco'): void {
  const { allReduce, size } = (group ?? {}) as Partial<Group>;
  if (typeof allReduce === 'function' && typeof size === 'number') return;
  throw invalidArgument(`${verb}: ${what}`, 'a group, as init() gives one', shown(group));
}

/** Returns the number of samples of a step. Throws unless it is one. */
export function samplesOf(options: { readonly samples?: number } | undefined): number {
  checkOptions('step', options, ['samples']);
  const samples = options?.samples ?? 1;
  if (Number.isFinite(samples) && samples >= 0) return samples;
  throw invalidArgument('step: samples', 'a finite number of at least 0', shown(samples));
}
