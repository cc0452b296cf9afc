// One curve of a job in bounded memory. Points are means over ranks. When there are too many points,
// neighbours are merged, so that the curve always covers the whole run, at a lower resolution.

const maxPoints = 2_000;

export interface CurvePart {
  /** Index of the first point in this part. The reader replaces its points from there on. */
  readonly from: number;
  readonly x: readonly number[];
  /** Null for values that are not finite. */
  readonly y: readonly (number | null)[];
}

export class Curve {
  readonly #x: number[] = [];
  readonly #sum: number[] = [];
  readonly #count: number[] = [];
  #width: number;
  #changedFrom = 0;
  #hasResumed = false;

  /** `width`: x values are rounded down to multiples of it. */
  constructor(width: number) {
    this.#width = width;
  }

  add(x: number, y: number): void {
    const key = this.#keyOf(x);
    if (this.#hasResumed) this.#cut(key);
    let at = this.#x.length;
    // Ranks are at most a few steps apart, so this loop is short.
    while (at > 0 && this.#x[at - 1]! >= key) at--;
    if (this.#x[at] === key) {
      this.#sum[at]! += y;
      this.#count[at]!++;
    } else {
      this.#x.splice(at, 0, key);
      this.#sum.splice(at, 0, y);
      this.#count.splice(at, 0, 1);
    }
    this.#changedFrom = Math.min(this.#changedFrom, at);
    if (this.#x.length > maxPoints) this.#merge();
  }

  /** Notes that the ranks have started again: the next point replaces all points from its step on. */
  resume(): void {
    this.#hasResumed = true;
  }

  /** Mean over ranks of the last point; null if there is none. */
  get last(): number | null {
    const at = this.#x.length - 1;
    return at < 0 ? null : this.#sum[at]! / this.#count[at]!;
  }

  /** Returns the points from index `from` on. */
  read(from = 0): CurvePart {
    const y = this.#sum.slice(from).map((sum, i) => {
      const mean = sum / this.#count[from + i]!;
      return Number.isFinite(mean) ? mean : null;
    });
    return { from, x: this.#x.slice(from), y };
  }

  /** Returns the points from the first one on that has changed since the last call; null if none has. */
  takeChanges(): CurvePart | null {
    const from = this.#changedFrom;
    this.#changedFrom = this.#x.length;
    return from < this.#x.length ? this.read(from) : null;
  }

  #keyOf(x: number): number {
    return Math.floor(x / this.#width) * this.#width;
  }

  #cut(key: number): void {
    this.#hasResumed = false;
    const at = this.#x.findIndex((x) => x >= key);
    if (at < 0) return;
    for (const list of [this.#x, this.#sum, this.#count]) list.length = at;
    this.#changedFrom = Math.min(this.#changedFrom, at);
  }

  #merge(): void {
    while (this.#x.length > maxPoints / 2) {
      this.#width *= 2;
      let kept = 0;
      for (let i = 0; i < this.#x.length; i++) {
        const key = this.#keyOf(this.#x[i]!);
        if (kept > 0 && this.#x[kept - 1] === key) {
          this.#sum[kept - 1]! += this.#sum[i]!;
          this.#count[kept - 1]! += this.#count[i]!;
          continue;
        }
        this.#x[kept] = key;
        this.#sum[kept] = this.#sum[i]!;
        this.#count[kept] = this.#count[i]!;
        kept++;
      }
      for (const list of [this.#x, this.#sum, this.#count]) list.length = kept;
    }
    this.#changedFrom = 0;
  }
}
