// A Generator walks through Philox blocks of four words; every call starts at a new block, so its numbers depend on
// the seed and on the sizes of the calls before, and on nothing else: the stream is the same on every machine and
// device. docs/decisions/2026-11-21-random-stream.md says which word becomes which element.

import { getRandomValues } from 'node:crypto';
import type { Stream } from '../backends/operands.ts';
import { capturing } from '../device/capture.ts';
import { badSeed, badState } from '../errors.ts';
import { fillNormal, fillUniform } from './random-fill.ts';
import type { GeneratorState } from './source.ts';

export class Generator {
  #seed = 0;
  #offset = 0;

  /** `seed`: an integer from 0 to 2^53 − 1. */
  constructor(seed: number) {
    this.manualSeed(seed);
  }

  /** Starts the stream of `seed` from its beginning. */
  manualSeed(seed: number): this {
    if (!Number.isSafeInteger(seed) || seed < 0) throw badSeed(seed);
    this.#seed = seed;
    this.#offset = 0;
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

  /** The position, which moves on by the blocks that hold `words` words: they are the caller's. */
  take(words: number): Stream {
    const capture = capturing()?.draw(this);
    const stream = capture ?? this.state();
    this.#offset += Math.ceil(words / 4);
    return stream;
  }

  /** Fills an array with numbers in [low, high). */
  uniform(out: Float32Array, low = 0, high = 1): void {
    fillUniform(out, this.take(out.length), low, high);
  }

  /** Fills an array with numbers of mean 0 and variance 1. */
  normal(out: Float32Array): void {
    fillNormal(out, this.take(out.length));
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
