// The line search of L-BFGS for a step that satisfies the strong Wolfe conditions (Nocedal and Wright, Numerical
// Optimization, chapter 3): it first finds an interval that has such a step, then makes the interval smaller. The order
// of trials and the constants are those of torch.optim.LBFGS.
import type { Tensor } from '../../core/tensor.ts';

/** A point on the line: its distance as a multiple of the direction, the loss there, and its derivatives. */
export interface Point {
  readonly t: number;
  readonly loss: number;
  readonly grad: Tensor;
  /** The derivative of the loss along the direction. */
  readonly slope: number;
}

/** Fraction of the expected decrease by which the loss must decrease. */
const decrease = 1e-4;
/** How small the slope must get, as a share of the first slope. */
const flatness = 0.9;

const clip = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high);

/**
 * Returns the position of the minimum of the cubic through two points with these slopes, clamped to `low` and `high`.
 */
function cubicMinimum(a: Point, b: Point, low = Math.min(a.t, b.t), high = Math.max(a.t, b.t)): number {
  const [left, right] = a.t <= b.t ? [a, b] : [b, a];
  const bend = left.slope + right.slope - (3 * (left.loss - right.loss)) / (left.t - right.t);
  const square = bend ** 2 - left.slope * right.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const root = Math.sqrt(square);
  const share = (right.slope + root - bend) / (right.slope - left.slope + 2 * root);
  return clip(right.t - (right.t - left.t) * share, low, high);
}

/** The search along one direction. */
export class LineSearch {
  readonly #start: Point;
  readonly #evaluate: (t: number) => Point;
  readonly #most: number;
  #trials = 0;
  /** The number of evaluations so far. */
  evaluations = 0;

  /** `start` is the point at 0; `evaluate` returns others. Makes at most `most` trials after the first. */
  constructor(start: Point, evaluate: (t: number) => Point, most: number) {
    this.#start = start;
    this.#evaluate = evaluate;
    this.#most = most;
  }

  #at(t: number): Point {
    this.evaluations++;
    return this.#evaluate(t);
  }

  #isTooHigh({ t, loss }: Point): boolean {
    return loss > this.#start.loss + decrease * t * this.#start.slope;
  }

  #isFlat({ slope }: Point): boolean {
    return Math.abs(slope) <= -flatness * this.#start.slope;
  }

  /**
   * Returns the best point that was found. `size` is the largest magnitude in the direction: an interval whose length
   * times it is below `tolerance` is not searched further.
   */
  run(first: number, size: number, tolerance: number): Point {
    let before = this.#start;
    let now = this.#at(first);
    let interval: [Point, Point] | null = null;
    while (interval === null && this.#trials < this.#most) {
      if (this.#isTooHigh(now) || (this.#trials > 1 && now.loss >= before.loss)) interval = [before, now];
      else if (this.#isFlat(now)) return now;
      else if (now.slope >= 0) interval = [before, now];
      else {
        const t = cubicMinimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
        before = now;
        now = this.#at(t);
        this.#trials++;
      }
    }
    return this.#narrow(interval ?? [this.#start, now], size, tolerance);
  }

  /** Makes the interval smaller until its lower end is good. */
  #narrow(ends: [Point, Point], size: number, tolerance: number): Point {
    let low = ends[0].loss <= ends[1].loss ? 0 : 1;
    let isStuck = false;
    while (this.#trials < this.#most) {
      const [left, right] = ends[0].t <= ends[1].t ? ends : [ends[1], ends[0]];
      const length = right.t - left.t;
      if (length * size < tolerance) break;
      let t: number = cubicMinimum(ends[0], ends[1]);
      const isNearEnd = Math.min(right.t - t, t - left.t) < 0.1 * length;
      // Near an end twice, or at it: a trial there would shorten the interval by little.
      const moves: boolean = isNearEnd && (isStuck || t >= right.t || t <= left.t);
      if (moves) t = right.t - t < t - left.t ? right.t - 0.1 * length : left.t + 0.1 * length;
      isStuck = isNearEnd && !moves;

      const now = this.#at(t);
      this.#trials++;
      if (this.#isTooHigh(now) || now.loss >= ends[low]!.loss) {
        ends[1 - low] = now;
        low = ends[0].loss <= ends[1].loss ? 0 : 1;
        continue;
      }
      const isDone = this.#isFlat(now);
      if (!isDone && now.slope * (ends[1 - low]!.t - ends[low]!.t) >= 0) ends[1 - low] = ends[low]!;
      ends[low] = now;
      if (isDone) break;
    }
    return ends[low]!;
  }
}
