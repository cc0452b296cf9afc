// Measures one rank's samples per second over its last few seconds, or over its last two reports if they are
// further apart.

const windowMs = 5_000;
const maxReports = 1_000;

export class Meter {
  readonly #reports: { readonly ms: number; readonly samples: number }[] = [];
  #samples = 0;

  add(ms: number, samples: number): void {
    this.#reports.push({ ms, samples });
    this.#samples += samples;
    while (
      this.#reports.length > maxReports ||
      (this.#reports.length > 2 && this.#reports[1]!.ms < ms - windowMs)
    ) {
      this.#samples -= this.#reports.shift()!.samples;
    }
  }

  /** Null until there are two reports. */
  get perSecond(): number | null {
    const first = this.#reports[0];
    const last = this.#reports.at(-1);
    if (!first || !last || last.ms <= first.ms) return null;
    return (1000 * (this.#samples - first.samples)) / (last.ms - first.ms);
  }
}
