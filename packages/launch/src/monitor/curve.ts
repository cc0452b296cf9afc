// One curve of a job in bounded memory. Points are means over ranks. When there are too many points,
// neighbours are merged, so that the curve always covers the whole run, at a lower resolution.

const maxPoints = 2_000;
const maxRuns = 100;

/** Consecutive steps whose value was not finite, on at least one rank. */
export interface BadRun {
  readonly from: number;
  readonly to: number;
  /** The first such value: NaN, Infinity or -Infinity. */
  readonly value: string;
  /** The rank that reported it first. */
  readonly rank: number;
  /** Whether the run goes up to the last point of the curve. */
  readonly isOpen: boolean;
}

export interface CurvePart {
  /** Index of the first point in this part. The reader replaces its points from there on. */
  readonly from: number;
  readonly x: readonly number[];
  /** Null for values that are not finite. */
  readonly y: readonly (number | null)[];
  /**
   * All runs of non-finite values; if there are very many, the first and the last ones. Their steps stay exact when
   * points merge.
   */
  readonly bad: readonly BadRun[];
}

interface Point {
  x: number;
  sum: number;
  count: number;
  bad: Omit<BadRun, 'isOpen'> | null;
}

export class Curve {
  #points: Point[] = [];
  #width: number;
  #changedFrom = 0;
  #hasResumed = false;

  /** `width` is the resolution: x values are rounded down to multiples of it. */
  constructor(width: number) {
    this.#width = width;
  }

  add(x: number, y: number, rank = 0): void {
    const key = this.#keyOf(x);
    const points = this.#points;
    if (this.#hasResumed) this.#cut(key);
    let at = points.length;
    // Ranks are at most a few steps apart, so this loop is short.
    while (at > 0 && points[at - 1]!.x >= key) at--;
    const bad = Number.isFinite(y) ? null : { from: x, to: x, value: `${y}`, rank };
    const point = { x: key, sum: y, count: 1, bad };
    const known = points[at];
    if (known?.x === key) merge(known, point);
    else points.splice(at, 0, point);
    this.#changedFrom = Math.min(this.#changedFrom, at);
    if (points.length > maxPoints) this.#coarsen();
  }

  /** Notes that the ranks have started again: the next point replaces all points from its step on. */
  resume(): void {
    this.#hasResumed = true;
  }

  /** Mean over ranks of the last point; null if there is none. */
  get last(): number | null {
    const point = this.#points.at(-1);
    return point ? point.sum / point.count : null;
  }

  /** Returns the points from index `from` on. */
  read(from = 0): CurvePart {
    const points = this.#points.slice(from);
    const y = points.map(({ sum, count }) => (Number.isFinite(sum / count) ? sum / count : null));
    return { from, x: points.map(({ x }) => x), y, bad: this.#badRuns() };
  }

  /** Returns the points from the first one that has changed since the last call; null if none has. */
  takeChanges(): CurvePart | null {
    const from = this.#changedFrom;
    this.#changedFrom = this.#points.length;
    return from < this.#points.length ? this.read(from) : null;
  }

  #badRuns(): BadRun[] {
    const runs: BadRun[] = [];
    for (const [at, { bad }] of this.#points.entries()) {
      if (!bad) continue;
      const before = this.#points[at - 1]?.bad ? runs.pop()! : bad;
      runs.push({ ...before, to: bad.to, isOpen: at === this.#points.length - 1 });
    }
    return runs.length <= maxRuns ? runs : [runs[0]!, ...runs.slice(1 - maxRuns)];
  }

  #keyOf(x: number): number {
    return Math.floor(x / this.#width) * this.#width;
  }

  #cut(key: number): void {
    this.#hasResumed = false;
    const at = this.#points.findIndex(({ x }) => x >= key);
    if (at < 0) return;
    this.#points.length = at;
    this.#changedFrom = Math.min(this.#changedFrom, at);
  }

  #coarsen(): void {
    while (this.#points.length > maxPoints / 2) {
      this.#width *= 2;
      const kept: Point[] = [];
      for (const point of this.#points) {
        const x = this.#keyOf(point.x);
        if (kept.at(-1)?.x === x) merge(kept.at(-1)!, point);
        else kept.push({ ...point, x });
      }
      this.#points = kept;
    }
    this.#changedFrom = 0;
  }
}

function merge(point: Point, other: Point): void {
  point.sum += other.sum;
  point.count += other.count;
  if (!other.bad) return;
  const from = Math.min(point.bad?.from ?? other.bad.from, other.bad.from);
  const to = Math.max(point.bad?.to ?? other.bad.to, other.bad.to);
  point.bad = { ...(point.bad ?? other.bad), from, to };
}
