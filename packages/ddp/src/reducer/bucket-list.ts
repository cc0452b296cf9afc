// The buckets of a reducer: the gradients of the running backward that they hold, and the bucket that is launched next.
import type { Group } from '@ringwise/collectives';
import { Bucket, type BucketParam } from './bucket.ts';
import type { CommHook } from './hook.ts';
import type { BucketPlan } from './plan.ts';
import type { Weighting } from './weighting.ts';
import type { Works } from './works.ts';

export class BucketList {
  readonly #params: readonly BucketParam[];
  readonly #hook: CommHook;
  #plan: readonly BucketPlan[] = [];
  #buckets: readonly Bucket[] = [];
  /** Bucket and slot of each parameter. */
  #locations: { readonly bucket: Bucket; readonly slot: number }[] = [];
  readonly #isReady: boolean[];
  #readyCount = 0;
  #launched = 0;
  #version = 0;

  constructor(params: readonly BucketParam[], hook: CommHook) {
    this.#params = params;
    this.#hook = hook;
    this.#isReady = params.map(() => false);
  }

  /** The buckets, in the order in which they are averaged. */
  get plan(): readonly BucketPlan[] {
    return this.#plan;
  }

  /** Number that changes whenever the buckets are replaced. */
  get version(): number {
    return this.#version;
  }

  get areAllReady(): boolean {
    return this.#readyCount === this.#params.length;
  }

  /** Indices of the parameters whose gradients the running backward has not delivered. */
  get missing(): number[] {
    return [...this.#params.keys()].filter((index) => !this.#isReady[index]);
  }

  /**
   * Replaces the buckets and binds gradients to the new ones. A group of one has none. `model` is the name of the model
   * for labels.
   */
  build(plan: readonly BucketPlan[], group: Group, model: string): void {
    this.retire();
    this.#plan = plan;
    if (group.size === 1) return;
    this.#buckets = plan.map((_, i) => new Bucket(plan, i, this.#params, group, this.#hook, model));
    this.#buckets.forEach((bucket, index) => {
      plan[index]!.slots.forEach(({ param }, slot) => {
        this.#locations[param] = { bucket, slot };
      });
    });
  }

  isReady(index: number): boolean {
    return this.#isReady[index]!;
  }

  /** Adds the final gradient of a parameter to its bucket. */
  collect(index: number): void {
    this.#isReady[index] = true;
    this.#readyCount++;
    const location = this.#locations[index];
    location?.bucket.collect(location.slot);
  }

  /** Fills all buckets with zeros, on a rank without data. */
  collectNothing(): void {
    for (const bucket of this.#buckets) bucket.collectNothing();
  }

  /**
   * Launches the next bucket. Returns the sequence number of its operation, -1 if it has none, or null if the bucket is
   * not full or all buckets have been launched.
   */
  launchNext(weighting: Weighting | null): number | null {
    const next = this.#buckets[this.#launched];
    if (!next?.isFull) return null;
    this.#launched++;
    return next.launch(weighting);
  }

  /** Waits for the averages of all buckets. */
  *settle(weighting: Weighting | null): Works {
    for (const bucket of this.#buckets) yield* bucket.settle(weighting);
  }

  /** Returns whether a parameter's gradient is zero everywhere. Waits for the device. */
  isZero(index: number): boolean {
    const { bucket, slot } = this.#locations[index]!;
    return bucket.isZero(slot);
  }

  /** Makes all gradients zero. */
  clear(): void {
    for (const bucket of this.#buckets) bucket.clear();
  }

  /** Prepares for the next backward. */
  reset(): void {
    for (const bucket of this.#buckets) bucket.reset();
    this.#isReady.fill(false);
    this.#readyCount = 0;
    this.#launched = 0;
  }

  /** Keeps the memory of buckets whose group has failed until their operations have ended. */
  keepUntilEnded(): void {
    for (const bucket of this.#buckets) bucket.keepUntilEnded();
  }

  /** Stops using the buckets. Does not wait for running operations. */
  retire(): void {
    for (const bucket of this.#buckets) bucket.retire();
    this.#buckets = [];
    this.#locations = [];
    this.#version++;
  }
}
