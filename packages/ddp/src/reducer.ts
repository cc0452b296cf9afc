// Turns gradients that become ready one by one into buckets that are averaged in index order.
//
//   idle ── first ready() ──▶ backward ── all ready, or end of backward ──▶ reducing ── all averaged ──▶ idle
//
// A full bucket is launched from inside backward, which goes on meanwhile. Buckets leave in index order even when a
// later one is full first, because every rank must make the same calls in the same order. At the end of backward the
// rest is launched. A group of one has no buckets; its gradients are averages already, but mistakes are reported as
// in any group.
import type { Group } from '@ringwise/collectives';
import { Bucket, type BucketParam } from './bucket.ts';
import { gradMissing, readyTwice, unfinished, unusedParams } from './errors.ts';
import type { BucketPlan } from './plan.ts';

/** What to do about parameters that got no gradient in a backward. */
export type UnusedPolicy = 'error' | 'zero';

export class Reducer {
  readonly #group: Group;
  readonly #params: readonly BucketParam[];
  readonly #unused: UnusedPolicy;
  readonly #buckets: readonly Bucket[];
  /** By parameter: its bucket and its slot there. */
  readonly #places: { readonly bucket: Bucket; readonly slot: number }[] = [];
  readonly #isReady: boolean[];
  #readyCount = 0;
  #launched = 0;
  #phase: 'idle' | 'backward' | 'reducing' = 'idle';
  #pauses = 0;

  /** Allocates the buckets and binds gradients to them. `plan` is planBuckets(params), the same on all ranks. */
  constructor(
    params: readonly BucketParam[],
    plan: readonly BucketPlan[],
    group: Group,
    unused: UnusedPolicy,
  ) {
    this.#group = group;
    this.#params = params;
    this.#unused = unused;
    this.#isReady = params.map(() => false);
    this.#buckets = group.size === 1 ? [] : plan.map((bucketPlan) => new Bucket(bucketPlan, params, group));
    this.#buckets.forEach((bucket, index) => {
      plan[index]!.slots.forEach(({ param }, slot) => {
        this.#places[param] = { bucket, slot };
      });
    });
  }

  /** The gradient of parameter `index` is final. Launches what is full; does not block. */
  ready(index: number): void {
    if (this.#pauses > 0) return;
    if (this.#phase === 'reducing') this.#fail(unfinished('backward', this.#group.rank));
    if (this.#isReady[index]) this.#fail(readyTwice(this.#params[index]!.name, this.#group.rank));
    this.#collect(index);
    this.#phase = this.#readyCount === this.#params.length ? 'reducing' : 'backward';
    this.#launchFull();
  }

  /**
   * Backward is over: launches what is left, and blocks until all is averaged if the group may block. Otherwise
   * finish() has to be awaited. Does nothing if no gradient became ready.
   */
  backwardEnded(): void {
    if (this.#phase === 'idle') return;
    if (this.#phase === 'backward') this.#launchRest();
    if (!this.#group.supports.sync) return;
    try {
      for (const bucket of this.#buckets) bucket.fence();
    } finally {
      this.#reset();
    }
  }

  /** Launches what is left and waits until all is averaged. Returns at once if nothing is under way. */
  async finish(): Promise<void> {
    if (this.#phase === 'idle') return;
    if (this.#phase === 'backward') this.#launchRest();
    try {
      for (const bucket of this.#buckets) await bucket.settled();
    } finally {
      this.#reset();
    }
  }

  /** Runs `fn`, in which gradients accumulate on this rank only. The next backward after it averages their sum. */
  noSync<T>(fn: () => T): T {
    this.checkIdle('noSync');
    this.#pauses++;
    const resume = () => {
      this.#pauses--;
    };
    let result: T;
    try {
      result = fn();
    } catch (error) {
      resume();
      throw error;
    }
    if (result instanceof Promise) return result.finally(resume) as T;
    resume();
    return result;
  }

  /** Throws if the gradients of an earlier backward still wait for finish(). */
  checkIdle(where: string): void {
    if (this.#phase !== 'idle') throw unfinished(where, this.#group.rank);
  }

  #collect(index: number): void {
    const param = this.#params[index]!;
    if (!param.bindGrad && param.grad === null) this.#fail(gradMissing(param.name, this.#group.rank));
    this.#isReady[index] = true;
    this.#readyCount++;
    const place = this.#places[index];
    place?.bucket.collect(place.slot);
  }

  #launchFull(): void {
    while (this.#buckets[this.#launched]?.isFull) this.#buckets[this.#launched++]!.launch();
  }

  #launchRest(): void {
    this.#contributeUnused();
    this.#phase = 'reducing';
    this.#launchFull();
  }

  #contributeUnused(): void {
    const unused = [...this.#params.keys()].filter((index) => !this.#isReady[index]);
    if (this.#unused === 'error') {
      const names = unused.map((index) => this.#params[index]!.name);
      this.#fail(unusedParams(names, this.#params.length, this.#group.rank));
    }
    for (const index of unused) this.#collect(index);
  }

  /** Peers wait for buckets that will never come, so the whole group is told. */
  #fail(error: Error): never {
    this.#reset();
    this.#group.abort(error);
    throw error;
  }

  #reset(): void {
    for (const bucket of this.#buckets) bucket.reset();
    this.#isReady.fill(false);
    this.#readyCount = 0;
    this.#launched = 0;
    this.#phase = 'idle';
  }
}
