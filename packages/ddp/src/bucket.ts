// One flat buffer of gradients that are averaged together. Gradients of engines that can bind them live in it;
// those of others are copied in when they are ready and copied out when they are averaged.
//
// The group owns the buffer from launch() until fence() or settled() has returned.
import { asBuffer, type BufferView, type Group, type Work } from '@ringwise/collectives';
import type { GradParam } from './grad-param.ts';
import { carrier, copy, isSameMemory, slice } from './memory.ts';
import type { BucketPlan } from './plan.ts';

/** What a bucket needs of a parameter. */
export type BucketParam = Pick<GradParam, 'name' | 'grad' | 'bindGrad'>;

interface Member {
  readonly param: BucketParam;
  /** The place of its gradient in the bucket. */
  readonly view: BufferView;
}

export class Bucket {
  readonly #group: Group;
  readonly #buffer: BufferView;
  readonly #members: readonly Member[];
  /** Members that the running backward still owes. */
  #pending = 0;
  #work: Work | null = null;

  /** Binds the gradients that can be bound. `params` is the list that the plan was made from. */
  constructor(plan: BucketPlan, params: readonly BucketParam[], group: Group) {
    this.#group = group;
    this.#buffer = asBuffer(group.alloc(plan.count, plan.dtype));
    this.#members = plan.slots.map(({ param, offset, count }) => ({
      param: params[param]!,
      view: slice(this.#buffer, offset, count),
    }));
    for (const { param, view } of this.#members) param.bindGrad?.(view);
    this.reset();
  }

  /** Before the next backward. */
  reset(): void {
    this.#pending = this.#members.length;
  }

  get isFull(): boolean {
    return this.#pending === 0;
  }

  /** Takes the gradient of member `index` (its slot in the plan), which is final. */
  collect(index: number): void {
    const { param, view } = this.#members[index]!;
    const { grad } = param;
    this.#pending--;
    if (grad !== null && isSameMemory(grad, view)) return;
    // Not bound, or bound once and dropped by the engine since.
    if (param.bindGrad) param.bindGrad(view);
    else copy(grad!, view);
  }

  /** Starts averaging. Does not block. */
  launch(): void {
    this.#work = this.#group.allReduce(carrier(this.#buffer), { op: 'avg' });
  }

  /** Blocks until the gradients are averaged; throws the group's error. */
  fence(): void {
    this.#work?.fence();
    this.#copyOut();
  }

  /** The same for groups that may not block, and for callers that need not. */
  async settled(): Promise<void> {
    await this.#work;
    this.#copyOut();
  }

  #copyOut(): void {
    for (const { param, view } of this.#members) if (!param.bindGrad) copy(view, param.grad!);
  }
}
