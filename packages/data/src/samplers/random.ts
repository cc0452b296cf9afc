// MT19937 with the seeding of PyTorch's generator for the CPU, so that a seed gives the same permutation as
// torch.randperm. Matsumoto & Nishimura, "Mersenne Twister", 1998; seeding as in init_genrand of their 2002 version.

import { outOfRange } from '../errors.ts';

const stateWords = 624;
const middle = 397;

export class Mt19937 {
  readonly #state = new Uint32Array(stateWords);
  #next = stateWords;

  /** Uses the low 32 bits of `seed`, as `torch.manual_seed` does. */
  constructor(seed: number) {
    const state = this.#state;
    state[0] = seed % 2 ** 32;
    for (let i = 1; i < stateWords; i++) {
      const previous = state[i - 1]!;
      state[i] = Math.imul(1812433253, previous ^ (previous >>> 30)) + i;
    }
  }

  /** Returns an integer uniform in [0, 2^32). */
  uint32(): number {
    if (this.#next === stateWords) this.#twist();
    let y = this.#state[this.#next++]!;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  /** Returns a number uniform in [0, 1) with 53 random bits from two draws. `torch.rand` draws other numbers. */
  float64(): number {
    const high = this.uint32() >>> 5;
    const low = this.uint32() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }

  #twist(): void {
    const state = this.#state;
    for (let i = 0; i < stateWords; i++) {
      const y = (state[i]! & 0x80000000) | (state[(i + 1) % stateWords]! & 0x7fffffff);
      state[i] = state[(i + middle) % stateWords]! ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
    this.#next = 0;
  }
}

/** Longest permutation. For longer ones PyTorch draws 64 bits per element and computes another permutation. */
export const longestPermutation = Math.floor((2 ** 32 - 1) / 20) - 1;

/**
 * Returns the elements of `torch.randperm(length, generator=torch.Generator().manual_seed(seed))`. Throws if `length`
 * is not an integer from 0 to 214,748,363, or `seed` no integer.
 */
export function randperm(length: number, seed: number): Int32Array {
  if (!Number.isInteger(length) || length < 0 || length > longestPermutation) {
    throw outOfRange('randperm: length', `an integer from 0 to ${longestPermutation}`, length);
  }
  if (!Number.isInteger(seed)) throw outOfRange('randperm: seed', 'an integer', seed);
  return shuffle(identityPermutation(length), new Mt19937(seed));
}

/** Shuffles `order` in place and returns it. */
export function shuffle(order: Int32Array, random: Mt19937): Int32Array {
  for (let i = 0; i < order.length - 1; i++) {
    // The remainder is slightly biased, as in PyTorch. Both operands are uint32, because V8 otherwise divides as
    // float64, at half the speed.
    const j = i + (random.uint32() % ((order.length - i) >>> 0));
    const picked = order[j]!;
    order[j] = order[i]!;
    order[i] = picked;
  }
  return order;
}

/** Returns 0, 1, …, length − 1. */
export function identityPermutation(length: number): Int32Array {
  const order = new Int32Array(length);
  for (let i = 0; i < length; i++) order[i] = i;
  return order;
}
