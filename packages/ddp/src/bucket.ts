// One flat buffer of gradients that are averaged together. Gradients of engines that can bind them live in it;
// those of others are copied in when they are ready and copied out when they are averaged.
//
// The group owns the buffer from launch() until settle() has run.
import { asBuffer, type BufferView, elementsOf, type Group, type TypedArray } from '@ringwise/collectives';
import type { GradParam } from './grad-param.ts';
import { type BucketGradient, type CommHook, type GradBucket, plainHook, sumHook } from './hook.ts';
import { copy, isSameMemory, slice } from './memory.ts';
import type { BucketPlan } from './plan.ts';
import { divide } from './scale.ts';
import type { Works } from './works.ts';

/** What a bucket needs of a parameter. */
export type BucketParam = Pick<GradParam, 'name' | 'grad' | 'bindGrad' | 'dropGrad' | 'shape'>;

interface Member {
  readonly param: BucketParam;
  /** The place of its gradient in the bucket. */
  readonly view: BufferView;
}

export class Bucket {
  /** The bucket as a hook sees it. */
  readonly contents: GradBucket;
  readonly #group: Group;
  readonly #hook: CommHook;
  readonly #buffer: BufferView;
  readonly #members: readonly Member[];
  /** Members that the running backward still owes. */
  #pending = 0;
  #works: Works | null = null;
  #next: ReturnType<Works['next']> | null = null;

  /** Binds the gradients that can be bound. `params` is the list that the plan was made from. */
  constructor(
    plans: readonly BucketPlan[],
    index: number,
    params: readonly BucketParam[],
    group: Group,
    hook: CommHook,
  ) {
    const plan = plans[index]!;
    const { dtype } = plan;
    this.#group = group;
    this.#hook = hook;
    this.#buffer = asBuffer(group.alloc(plan.count, dtype));
    this.#members = plan.slots.map(({ param, offset, count }) => ({
      param: params[param]!,
      view: slice(this.#buffer, offset, count),
    }));
    for (const { param, view } of this.#members) param.bindGrad?.(view);
    const data = elementsOf(this.#buffer) as TypedArray;
    const gradients = this.#members.map(gradientOf);
    this.contents = { index, isLast: index === plans.length - 1, data, dtype, gradients };
    this.reset();
  }

  /** Before the next backward. */
  reset(): void {
    this.#pending = this.#members.length;
    this.#works = null;
    this.#next = null;
  }

  get isFull(): boolean {
    return this.#pending === 0;
  }

  get bytes(): number {
    return this.contents.data.byteLength;
  }

  /** Takes the gradient of member `index` (its slot in the plan), which is final. */
  collect(index: number): void {
    const { param, view } = this.#members[index]!;
    const { grad } = param;
    this.#pending--;
    if (grad !== null && isSameMemory(grad, view)) return;
    // Not bound, or bound once and dropped by the engine since.
    if (param.bindGrad) param.bindGrad(view);
    else if (grad !== null) copy(grad, view);
    else clear(view);
  }

  /** Takes zeros for all members, on a rank that has no more data. */
  collectNothing(): void {
    for (const slot of this.#members.keys()) this.collect(slot);
    clear(this.#buffer);
  }

  /**
   * Starts averaging; with weights the gradients are summed, and settle() divides. Does not block. Returns the number of
   * the first operation in the group, -1 if the hook needs none.
   */
  launch(isWeighted: boolean): number {
    const isPlain = this.#hook === plainHook;
    this.#works = (isPlain && isWeighted ? sumHook : this.#hook)(this.contents, this.#group);
    this.#next = this.#works.next();
    return this.#next.done ? -1 : this.#next.value.seq;
  }

  /** Does what is left of the hook. `totalWeight`: of all ranks, or null without weights. */
  *settle(totalWeight: number | null): Works {
    while (this.#next?.done === false) {
      yield this.#next.value;
      this.#next = this.#works!.next();
    }
    if (totalWeight !== null) {
      // A hook has averaged, so it has divided by the number of ranks already.
      divide(this.#buffer, this.#hook === plainHook ? totalWeight : totalWeight / this.#group.size);
    }
    for (const { param, view } of this.#members) {
      if (!param.bindGrad && param.grad !== null) copy(view, param.grad);
    }
  }

  /** Whether the gradient of a member is zero everywhere. */
  isZero(index: number): boolean {
    return (elementsOf(this.#members[index]!.view) as Float32Array).every((value) => value === 0);
  }
}

function gradientOf({ param, view }: Member): BucketGradient {
  return { name: param.name, shape: param.shape ?? [view.count], data: elementsOf(view) as TypedArray };
}

function clear(view: BufferView): void {
  (elementsOf(view) as Float32Array).fill(0);
}
