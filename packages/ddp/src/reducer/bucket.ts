// One flat buffer of gradients that are averaged together. Gradients of engines that can bind them live in
// the buffer; other gradients are copied in when they are ready and copied out when they are averaged. If the
// parameters are on a device, the buffer is on the device too, in memory that the engine has allocated.
//
// The group borrows the buffer from launch() until settle() has finished.
import { allocHost, asBuffer, type BufferView, bufferSymbol, type Group } from '@ringwise/collectives';
import { noBucketMemory } from '../errors.ts';
import type { BucketMemory, GradParam } from '../wrapper/grad-param.ts';
import { Contents } from './contents.ts';
import { type CommHook, type GradBucket, plainHook, runHook, sumHook, weightedHook } from './hook.ts';
import { beginsAtSameAddress, copy, HostMemory } from './memory.ts';
import type { BucketPlan } from './plan.ts';
import type { Weighting } from './weighting.ts';
import type { Works } from './works.ts';

/** The members of a parameter that a bucket uses. */
export type BucketParam = Pick<
  GradParam,
  | 'name'
  | 'grad'
  | 'bindGrad'
  | 'allocBucket'
  | 'divideGrad'
  | 'dropGrad'
  | 'keepsZeros'
  | 'shape'
  | 'requiresGrad'
>;

interface Member {
  readonly param: BucketParam;
  /** Memory of the gradient inside the bucket. */
  readonly memory: BucketMemory;
  /**
   * View of that memory from when the bucket was made: valid for its location, not for its current stream.
   */
  readonly view: BufferView;
}

/** Buckets that have been replaced while an operation of their group had not ended. */
const inUse = new Set<Bucket>();

export class Bucket {
  /** The bucket as a hook sees it. */
  readonly contents: GradBucket;
  readonly #group: Group;
  readonly #hook: CommHook;
  readonly #memory: BucketMemory;
  readonly #members: readonly Member[];
  readonly #deregister: () => void;
  /** Number of gradients that the running backward has yet to deliver. */
  #pending = 0;
  /** The total and the label of the last average with a known total; reused while the total stays the same. */
  #labelled: { readonly total: number; readonly label: string } = { total: 0, label: '' };
  #works: Works | null = null;
  #next: ReturnType<Works['next']> | null = null;

  /**
   * Binds the gradients that can be bound. `params` is the list that the plan was made from. `model` is the
   * model's name for labels.
   */
  constructor(
    plans: readonly BucketPlan[],
    index: number,
    params: readonly BucketParam[],
    group: Group,
    hook: CommHook,
    model: string,
  ) {
    const plan = plans[index]!;
    this.#group = group;
    this.#hook = hook;
    this.#memory = memoryFor(plan, params, group);
    this.#deregister = group.register(this.#memory);
    this.#members = plan.slots.map(({ param, offset, count }) => {
      const memory = this.#memory.part(offset, count);
      return { param: params[param]!, memory, view: memory[bufferSymbol]() };
    });
    for (const { param, view } of this.#members) param.bindGrad?.(view);
    this.contents = new Contents(index, index === plans.length - 1, model, this.#memory, this.#members);
    this.reset();
  }

  /** Ends the bucket's use: it will not be launched again. Idempotent. */
  retire(): void {
    this.#deregister();
  }

  /**
   * Keeps a reference to the bucket's memory until its pending operation has ended or failed. Call it before the bucket
   * of a failed group is replaced.
   */
  keepUntilEnded(): void {
    const work = this.#next?.done === false ? this.#next.value : null;
    if (work === null || work.done) return;
    inUse.add(this);
    const forget = () => void inUse.delete(this);
    void work.then(forget, forget);
  }

  /** Makes all gradients zero. */
  clear(): void {
    this.#memory.clear();
    for (const { param } of this.#members) {
      if (!param.bindGrad && param.grad !== null) new HostMemory(param.grad).clear();
    }
  }

  /** Prepares the bucket for the next backward. */
  reset(): void {
    this.#pending = this.#members.length;
    this.#works = null;
    this.#next = null;
  }

  get isFull(): boolean {
    return this.#pending === 0;
  }

  /** Adds the final gradient of member `index`, which is its slot in the plan. */
  collect(index: number): void {
    const { param, memory, view } = this.#members[index]!;
    const { grad } = param;
    this.#pending--;
    if (grad !== null && beginsAtSameAddress(grad, view)) return;
    // The gradient was never bound, or it was bound and the engine has dropped it since.
    if (param.bindGrad) param.bindGrad(view);
    else if (grad !== null) copy(grad, view);
    else memory.clear();
  }

  /** Fills the bucket with zeros and marks it as full, on a rank that has no more data. */
  collectNothing(): void {
    for (const slot of this.#members.keys()) this.collect(slot);
    this.#memory.clear();
  }

  /**
   * Starts averaging, without blocking. With weights whose `knownTotal` is null, the plain hook only sums the
   * gradients, and settle() divides them. Another hook gets gradients that are divided already, so that errors that it
   * keeps for the next step do not depend on the weights; then the divisor must be valid. Returns the sequence number
   * of the first operation, or -1 if the hook starts none or starts it on another group.
   */
  launch(weighting: Pick<Weighting, 'knownTotal' | 'divisor'> | null): number {
    // A hook computes an average, so it divides by the number of ranks itself.
    if (weighting !== null && this.#hook !== plainHook) this.#divide(weighting.divisor / this.#group.size);
    this.#works = this.#average(weighting);
    this.#next = this.#works.next();
    return this.#next.done || this.#next.value.group !== this.#group.name ? -1 : this.#next.value.seq;
  }

  #average(weighting: Pick<Weighting, 'knownTotal'> | null): Works {
    const { contents } = this;
    if (this.#hook !== plainHook) return runHook(this.#hook, contents, this.#group);
    if (weighting === null) return plainHook(contents, this.#group);
    const { knownTotal } = weighting;
    if (knownTotal === null) return sumHook(contents, this.#group);
    // The total is part of the label, so ranks that pass different totals get a mismatch. Most steps repeat the total
    // of the step before.
    if (this.#labelled.total !== knownTotal)
      this.#labelled = { total: knownTotal, label: `${contents.label}, weights of ${knownTotal}` };
    return weightedHook(contents, this.#group, knownTotal, this.#labelled.label);
  }

  /**
   * Runs the rest of the hook, divides by the weights where launch() has not, and copies the averages to gradients
   * that are not bound. `weighting` must be the one passed to launch(), settled.
   */
  *settle(weighting: Weighting | null): Works {
    while (this.#next?.done === false) {
      yield this.#next.value;
      this.#next = this.#works!.next();
    }
    const isSum = weighting !== null && weighting.knownTotal === null && this.#hook === plainHook;
    if (isSum) this.#divide(weighting.divisor);
    for (const { param, view } of this.#members) {
      if (!param.bindGrad && param.grad !== null) copy(view, param.grad);
    }
  }

  /**
   * Divides the gradients. Uses the autograd library's divideGrad() where it has the gradients, because it is faster
   * than a loop in JavaScript.
   */
  #divide(divisor: number): void {
    if (divisor === 1) return;
    for (const { param, memory, view } of this.#members) {
      const { grad } = param;
      if (param.divideGrad && grad !== null && beginsAtSameAddress(grad, view)) param.divideGrad(divisor);
      else memory.divide(divisor);
    }
  }

  /** Returns whether a member's gradient is zero everywhere. Waits for the device. */
  isZero(index: number): boolean {
    return this.#members[index]!.memory.isZero();
  }
}

/**
 * Drops the gradients. If the engine cannot drop one, moves it out of the buckets of `plan`, filled with zeros. For a
 * reducer that continues in a group of one, which has no buckets.
 */
export function leaveBuckets(plan: readonly BucketPlan[], params: readonly BucketParam[]): void {
  for (const { dtype, device, slots } of plan) {
    for (const { param: index, count } of slots) {
      const param = params[index]!;
      if (param.dropGrad) param.dropGrad();
      else if (param.bindGrad) bindZeros(param, device, dtype, count);
      else if (param.grad !== null) new HostMemory(param.grad).clear();
    }
  }
}

/** Gives gradients that do not exist the value zero, in memory of their own: in a group of one there are no buckets. */
export function zeroMissing(plan: readonly BucketPlan[], params: readonly BucketParam[]): void {
  for (const { dtype, device, slots } of plan) {
    for (const { param: position, count } of slots) {
      const param = params[position]!;
      const isBindable = param.bindGrad && (device.kind === 'cpu' || param.allocBucket);
      if (isBindable && param.grad === null) bindZeros(param, device, dtype, count);
    }
  }
}

function bindZeros(
  param: BucketParam,
  device: BucketPlan['device'],
  dtype: BucketPlan['dtype'],
  count: number,
): void {
  const onHost = device.kind === 'cpu';
  const memory = onHost ? new HostMemory(allocHost(count, dtype)) : param.allocBucket!(count);
  param.bindGrad!(memory[bufferSymbol]());
  memory.clear();
}

/** Allocates zeroed memory on the device of the bucket's parameters. */
function memoryFor(
  { dtype, device, count, slots }: BucketPlan,
  params: readonly BucketParam[],
  group: Group,
): BucketMemory {
  if (device.kind === 'cpu') return new HostMemory(asBuffer(group.alloc(count, dtype)));
  const members = slots.map(({ param }) => params[param]!);
  const unsupported = members.find(({ allocBucket, bindGrad }) => !(allocBucket && bindGrad));
  if (unsupported !== undefined) throw noBucketMemory(unsupported.name, `${device.kind}:${device.index}`);
  return members[0]!.allocBucket!(count);
}
