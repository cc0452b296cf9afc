// Makes a stream of random choices that a text determines, the same on every machine: FNV-1a of the text seeds
// Marsaglia's xorshift128.

export class Draws {
  readonly #state = new Uint32Array(4);

  constructor(seed: string) {
    let hash = 2166136261;
    for (let i = 0; i < 4; i++) {
      for (const letter of `${seed}#${i}`) hash = Math.imul(hash ^ letter.codePointAt(0)!, 16777619);
      this.#state[i] = hash;
    }
    if (this.#state.every((word) => word === 0)) this.#state[0] = 1;
    for (let i = 0; i < 16; i++) this.#word();
  }

  #word(): number {
    const s = this.#state;
    let t = s[3]!;
    t ^= t << 11;
    t ^= t >>> 8;
    s.copyWithin(1, 0, 3);
    s[0] = t ^ s[0]! ^ (s[0]! >>> 19);
    return s[0]!;
  }

  /** Returns a uniform number in [0, 1). */
  uniform(): number {
    return this.#word() / 2 ** 32;
  }

  /** Returns an integer from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.uniform() < probability;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)]!;
  }

  shuffled<T>(list: readonly T[]): T[] {
    const result = [...list];
    for (let i = result.length - 1; i > 0; i--) {
      const j = this.int(0, i);
      [result[i], result[j]] = [result[j]!, result[i]!];
    }
    return result;
  }
}
