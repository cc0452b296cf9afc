// The layout of the buckets. It depends only on the list of parameters, the limits, and the order in which gradients
// are expected.
//
// Backward produces gradients roughly in reverse order of definition, so buckets are filled in that order, and the
// first bucket is sent while backward computes the rest. The first bucket is small, so that communication starts early.
// A bucket closes with the parameter that reaches its limit, and includes it: buckets exceed the limit rather than
// leave a remainder that would be sent alone. Every rank computes the same plan; ddp() compares the hashes.
import { createHash } from 'node:crypto';
import type { Device, DType } from '@ringwise/collectives';
import { byteSize } from '@ringwise/collectives';
import { checkOptions, checkPositive } from '../check.ts';

/** The members of a parameter that the plan depends on. */
export interface PlanParam {
  /** Type of the gradient. */
  readonly dtype: DType;
  /** Number of elements. */
  readonly count: number;
  /** Device of the gradient. */
  readonly device: Device;
}

/** Limits in bytes. They apply from the first step on. */
export interface PlanLimits {
  /** Size in bytes from which on a bucket is full. */
  readonly bucketBytes: number;
  /** Limit of the first bucket of each device and dtype. */
  readonly firstBucketBytes: number;
}

/** Location of one gradient in its bucket. */
export interface Slot {
  /** Index into the list of parameters. */
  readonly param: number;
  /** In elements from the start of the bucket; the slot begins at a multiple of 64 bytes. */
  readonly offset: number;
  /** Number of elements. */
  readonly count: number;
}

/** One flat buffer: gradients of one device and dtype, in reverse order of definition. */
export interface BucketPlan {
  /** Type of the gradients. */
  readonly dtype: DType;
  /** Device of the gradients. */
  readonly device: Device;
  /** Number of elements, including gaps between slots. */
  readonly count: number;
  /** Slots of the gradients, in memory order. */
  readonly slots: readonly Slot[];
}

const slotBytes = 64; // one cache line; also what vector loads and copy engines like best

/**
 * Assigns every parameter to a bucket. `order` lists positions in `params` in the order in which their gradients are
 * expected; by default from the last to the first. Returns the buckets in the order in which they should fill up. Pure.
 */
export function planBuckets(
  params: readonly PlanParam[],
  limits: PlanLimits,
  order: ArrayLike<number> = Array.from(params, (_, i) => params.length - 1 - i),
): BucketPlan[] {
  checkOptions('planBuckets', limits, { known: ['bucketBytes', 'firstBucketBytes'] });
  for (const name of ['bucketBytes', 'firstBucketBytes'] as const) {
    checkPositive(`planBuckets: ${name}`, limits?.[name], 'a positive number of bytes');
  }
  const closed: Slot[][] = [];
  const open = new Map<string, Slot[]>();
  const seen = new Set<string>();
  const turn = new Uint32Array(params.length);
  for (let at = 0; at < order.length; at++) {
    const i = order[at]!;
    turn[i] = at;
    const { dtype, count, device } = params[i]!;
    const key = `${device.kind}:${device.index} ${dtype}`;
    const slots = open.get(key) ?? [];
    const step = slotBytes / byteSize(dtype);
    const slot = { param: i, offset: Math.ceil(end(slots) / step) * step, count };
    slots.push(slot);
    open.set(key, slots);
    if (end(slots) * byteSize(dtype) >= (seen.has(key) ? limits.bucketBytes : limits.firstBucketBytes)) {
      closed.push(slots);
      open.delete(key);
      seen.add(key);
    }
  }
  // A bucket is full when its last member is ready, so that member decides the bucket's index.
  return [...closed, ...open.values()]
    .sort((a, b) => turn[a.at(-1)!.param]! - turn[b.at(-1)!.param]!)
    .map((slots) => {
      const { dtype, device } = params[slots[0]!.param]!;
      return { dtype, device, count: end(slots), slots };
    });
}

/** Returns a digest of the whole layout. Ranks whose digests are equal can reduce with each other. */
export function planHash(plan: readonly BucketPlan[]): string {
  // Ranks of one job may use cuda:0 and cuda:1, so devices are numbered in order of first appearance.
  const devices: string[] = [];
  const ordinal = (device: Device) => {
    const name = `${device.kind}:${device.index}`;
    if (!devices.includes(name)) devices.push(name);
    return [device.kind, devices.indexOf(name)];
  };
  const layout = plan.map((bucket) => [
    bucket.dtype,
    ...ordinal(bucket.device),
    bucket.count,
    bucket.slots.map((slot) => [slot.param, slot.offset, slot.count]),
  ]);
  return createHash('sha256').update(JSON.stringify(layout)).digest('hex');
}

function end(slots: readonly Slot[]): number {
  const last = slots.at(-1);
  return last ? last.offset + last.count : 0;
}
