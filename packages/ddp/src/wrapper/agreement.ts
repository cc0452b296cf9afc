// Checks the facts that all ranks must agree on before gradients are averaged: the model's parameters and buffers, the
// options, the layout of the buckets. Either all ranks throw the same error, or none throws.

import { duplicateName, noParams, notAParam, paramsDiffer, plansDiffer } from '../errors.ts';
import { apart } from '../reducer/memory.ts';
import { type BucketPlan, planBuckets, planHash } from '../reducer/plan.ts';
import { differingTexts, type Entry, firstDisagreement } from './compare.ts';
import {
  type FrozenParam,
  frozenParamsOf,
  type GradParam,
  type GradParamSource,
  paramsOf,
  type StateBuffer,
  stateBuffersOf,
} from './grad-param.ts';
import type { CheckedOptions } from './options.ts';
import type { Claim } from './wrapped.ts';

/** The parts of a model that ddp() uses. */
export interface Parts {
  readonly params: readonly GradParam[];
  readonly frozen: readonly FrozenParam[];
  readonly buffers: readonly StateBuffer[];
}

export function partsOf(source: GradParamSource | Iterable<GradParam>): Parts {
  return { params: paramsOf(source), frozen: frozenParamsOf(source), buffers: stateBuffersOf(source) };
}

/**
 * Compares all parts and options between the ranks, and claims the parameters. Collective. If a parameter
 * cannot be used on one rank, or is wrapped already, all ranks throw.
 */
export async function agreeOnPlan(
  parts: Parts,
  claim: Claim,
  options: CheckedOptions,
): Promise<BucketPlan[]> {
  const { params, frozen } = parts;
  const { group, bucketBytes, firstBucketBytes } = options;
  const difference = await firstDisagreement(group, () => {
    const entries = entriesOf(parts);
    checkNames(entries);
    claim.take(params);
    return entries;
  });
  if (difference) throw paramsDiffer(difference.index, difference.name, difference.values);
  if (params.length === 0) throw noParams(frozen.length);

  const plan = planBuckets(
    params.map(({ value }) => value),
    { bucketBytes, firstBucketBytes },
  );
  const layouts = await differingTexts(group, settingsText(options, plan));
  if (layouts) throw plansDiffer(layouts);
  return plan;
}

/**
 * Compares the parts, options and layout of a wrapped model between the ranks of `options.group`, after a change of the
 * group. Collective. All ranks throw if they differ.
 */
export async function agreeAgain(
  parts: Parts,
  options: CheckedOptions,
  plan: readonly BucketPlan[],
): Promise<void> {
  const { group } = options;
  if (group.size === 1) return;
  const difference = await firstDisagreement(group, () => entriesOf(parts));
  if (difference) throw paramsDiffer(difference.index, difference.name, difference.values, 'rebind');
  const layouts = await differingTexts(group, settingsText(options, plan));
  if (layouts) throw plansDiffer(layouts, 'rebind');
}

function entriesOf({ params, frozen, buffers }: Parts): Entry[] {
  const entry = ({ name, value, shape = [value.count] }: FrozenParam, suffix = ''): Entry => {
    return [name, `[${value.dtype} × ${shape.join(' × ')}]${suffix}`];
  };
  for (const [position, param] of params.entries()) {
    const { name, value, onGradReady } = (param ?? {}) as Partial<GradParam>;
    const isParam = typeof name === 'string' && value !== undefined && typeof onGradReady === 'function';
    if (!isParam) throw notAParam(position);
  }
  // Buffers that share memory with earlier ones are broadcast in calls of their own, which all ranks must make.
  const sharing = new Set(apart(buffers).slice(1).flat());
  return [
    ...params.map((param) => entry(param as Omit<GradParam, 'onGradReady'>)),
    ...frozen.map((param) => entry(param, ', frozen')),
    ...buffers.map((buffer) => entry(buffer, sharing.has(buffer) ? ', shared memory' : '')),
  ];
}

function checkNames(entries: readonly Entry[]): void {
  const seen = new Set<string>();
  for (const [name] of entries) {
    if (seen.has(name)) throw duplicateName(name);
    seen.add(name);
  }
}

/** Formats what ranks must agree on besides the parameters: the options, and a hash of the bucket layout. */
function settingsText(options: CheckedOptions, plan: readonly BucketPlan[]): string {
  const { bucketBytes, firstBucketBytes, unused, rebuild, staticGraph, broadcastBuffers, hook } = options;
  const flags = Object.entries({ rebuild, staticGraph, broadcastBuffers }).map(
    ([name, on]) => `${name} ${on}`,
  );
  const limits = `bucketBytes ${bucketBytes}, firstBucketBytes ${firstBucketBytes}`;
  const rest = [`unused ${unused}`, ...flags, `hook ${hook.name || 'anonymous'}`].join(', ');
  return `${limits}, ${rest} (layout ${planHash(plan).slice(0, 16)})`;
}
