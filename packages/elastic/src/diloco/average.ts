// One average in flight: two operations that start together, so that the comparison of ranks takes no extra round trip.
// The first exchanges each rank's weight and the hash of its global parameters; the second sums the differences.
import type { Group, Work } from '@ringwise/collectives';
import { countsDiffer, notInSync } from './errors.ts';
import type { Fragment } from './fragment.ts';

/** Numbers that each rank sends before the differences: the average's number, its weight, and the hash. */
const headerLength = 3;

export class Average {
  readonly fragment: Fragment;
  /** The inner step at whose end the average is applied. */
  dueStep: number;
  /** Number of samples that this rank contributes. */
  weight: number;
  /** The sum of the weights of all ranks. Valid once the average is complete. */
  totalWeight = 0;
  /** Whether `fragment.flat` holds the sum over all ranks. */
  isComplete = false;
  #headers = new Float64Array(0);
  #works: readonly Work[] = [];

  constructor(fragment: Fragment, dueStep: number, weight: number) {
    this.fragment = fragment;
    this.dueStep = dueStep;
    this.weight = weight;
  }

  /** The weights: of all ranks together, of this rank, and of the mean rank. Valid once the average is complete. */
  get weights(): Readonly<Record<'weight' | 'own' | 'mean', number>> {
    const mean = (this.totalWeight * headerLength) / this.#headers.length;
    return { weight: this.totalWeight, own: this.weight, mean };
  }

  /**
   * Starts the operations on `group`, from the present parameters. `number` counts averages and is equal on all ranks.
   * A group that has failed refuses them, which complete() reports.
   */
  start(group: Group, number: number, wire: 'full' | 'bfloat16' | 'int8'): void {
    const { fragment, weight } = this;
    const label = `diloco fragment ${fragment.index}`;
    this.isComplete = false;
    fragment.subtract(weight);
    this.#headers = new Float64Array(headerLength * group.size);
    const { flat, nextResidual } = fragment;
    this.#works = [
      group.allGather(Float64Array.of(number, weight, fragment.hash()), this.#headers, { label }),
      group.allReduce(flat, { wire, label, ...(nextResidual !== null && { residual: nextResidual }) }),
    ];
  }

  /**
   * Waits for the operations. Throws the group's error, or ERR_ELASTIC_STATE on all ranks if the ranks are at
   * different averages or have different global parameters; nothing is applied then.
   */
  async complete(verb: string): Promise<void> {
    for (const work of this.#works) await work;
    const column = (at: number) =>
      Array.from(
        { length: this.#headers.length / headerLength },
        (_, rank) => this.#headers[rank * headerLength + at]!,
      );
    const numbers = column(0);
    if (numbers.some((number) => number !== numbers[0])) throw countsDiffer(verb, numbers.map(String));
    const hashes = column(2);
    if (hashes.some((hash) => hash !== hashes[0]))
      throw notInSync(
        verb,
        this.fragment.index,
        hashes.map((hash) => hash.toString(16).padStart(12, '0')),
      );
    this.totalWeight = column(1).reduce((sum, weight) => sum + weight, 0);
    this.isComplete = true;
  }

  /** Waits until no operation uses the fragment's memory, whether or not they succeed. */
  async quiesce(): Promise<void> {
    await Promise.allSettled(this.#works);
    this.#works = [];
  }
}
