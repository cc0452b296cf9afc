// Random numbers. A Generator walks through Philox blocks of four words; every call starts at a new block, so its
// numbers depend on the seed and on the sizes of the calls before, and on nothing else: the stream is the same on
// every machine. Uniform: the upper 24 bits of a word. Normal: Box–Muller on pairs of words, in float64.
import { getRandomValues } from 'node:crypto';
import { badSeed, badState } from './errors.ts';
import { philox4x32 } from './philox.ts';

export interface GeneratorState {
  readonly seed: number;
  /** Blocks of four words used so far. */
  readonly offset: number;
}

const unit = 2 ** -24;

export class Generator {
  #seed = 0;
  #offset = 0;
  readonly #key = new Uint32Array(2);
  readonly #counter = new Uint32Array(4);
  readonly #words = new Uint32Array(4);

  /** `seed`: an integer from 0 to 2^53 − 1. */
  constructor(seed: number) {
    this.manualSeed(seed);
  }

  /** Starts the stream of `seed` from its beginning. */
  manualSeed(seed: number): this {
    if (!Number.isSafeInteger(seed) || seed < 0) throw badSeed(seed);
    this.#seed = seed;
    this.#offset = 0;
    this.#key[0] = seed >>> 0;
    this.#key[1] = Math.floor(seed / 2 ** 32);
    return this;
  }

  /** The position in the stream; plain data that can be saved with a checkpoint. */
  state(): GeneratorState {
    return { seed: this.#seed, offset: this.#offset };
  }

  setState(state: GeneratorState): void {
    if (!Number.isSafeInteger(state.offset) || state.offset < 0) throw badState(state.offset);
    this.manualSeed(state.seed);
    this.#offset = state.offset;
  }

  #nextBlock(): Uint32Array {
    this.#counter[0] = this.#offset >>> 0;
    this.#counter[1] = Math.floor(this.#offset / 2 ** 32);
    this.#offset++;
    philox4x32(this.#words, this.#counter, this.#key);
    return this.#words;
  }

  /** Fills `out` with numbers in [low, high). */
  uniform(out: Float32Array, low = 0, high = 1): void {
    const scale = (high - low) * unit;
    for (let i = 0; i < out.length; i += 4) {
      const words = this.#nextBlock();
      const n = Math.min(4, out.length - i);
      for (let j = 0; j < n; j++) out[i + j] = low + (words[j]! >>> 8) * scale;
    }
  }

  /** Fills `out` with numbers of mean 0 and variance 1. */
  normal(out: Float32Array): void {
    for (let i = 0; i < out.length; i += 4) {
      const words = this.#nextBlock();
      const n = Math.min(4, out.length - i);
      for (let j = 0; j < n; j++) {
        // (0, 1], so that the logarithm is finite.
        const radius = Math.sqrt(-2 * Math.log(((words[j & 2]! >>> 8) + 1) * unit));
        const angle = 2 * Math.PI * (words[(j & 2) + 1]! >>> 8) * unit;
        out[i + j] = radius * (j & 1 ? Math.sin(angle) : Math.cos(angle));
      }
    }
  }
}

/** A generator of its own for `seed`. */
export const generator = (seed: number): Generator => new Generator(seed);

let shared: Generator | null = null;

/** The generator that is used where none is given; seeded by chance until manualSeed is called. */
export function defaultGenerator(): Generator {
  shared ??= new Generator(getRandomValues(new Uint32Array(1))[0]!);
  return shared;
}

/** Seeds the default generator, so that everything random that follows repeats from run to run. */
export function manualSeed(seed: number): Generator {
  return defaultGenerator().manualSeed(seed);
}
