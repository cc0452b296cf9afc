// Tracks which parameters got a gradient since the last reduction, on this rank and on any rank, including
// backwards inside noSync.
import type { Group } from '@ringwise/collectives';
import type { Works } from './works.ts';

export class Usage {
  readonly #group: Group;
  readonly #isUsed: Uint8Array<ArrayBuffer>;
  #anywhere: Uint8Array<ArrayBuffer>;

  constructor(count: number, group: Group) {
    this.#group = group;
    this.#isUsed = new Uint8Array(count);
    this.#anywhere = new Uint8Array(count);
  }

  mark(index: number): void {
    this.#isUsed[index] = 1;
  }

  isUsed(index: number): boolean {
    return this.#isUsed[index] === 1;
  }

  /** Exchanges the usage with all ranks; afterwards isUsedAnywhere() is valid. */
  *exchange(): Works {
    this.#anywhere = this.#isUsed.slice();
    yield this.#group.allReduce(this.#anywhere, { op: 'max' });
  }

  isUsedAnywhere(index: number): boolean {
    return this.#anywhere[index] === 1;
  }

  reset(): void {
    this.#isUsed.fill(0);
  }
}
