// The random generator. It goes through Philox blocks of four words, and every call starts at a new block. So
// its numbers depend only on the seed and the sizes of earlier calls, and the stream is equal on every
// machine and device. docs/decisions/2026-11-21-random-stream.md tells which word becomes which element.

import { getRandomValues } from 'node:crypto';
import type { Stream } from '../backends/operands.ts';
import { checkState } from '../checks/value-checks.ts';
import { capturing, refuseWhileCapturing } from '../device/capture.ts';
import { badSeed, badState } from '../errors.ts';
import { fillNormal, fillUniform } from './random-fill.ts';
import type { GeneratorState } from './source.ts';

/** A stream of random numbers, Philox4x32-10: the same on every machine. */
export class Generator {
  #seed = 0;
  #offset = 0;

  /** Makes a generator. `seed` is an integer from 0 to 2^53 − 1. */
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

  /** Returns the position in the stream: plain data that can be saved with a checkpoint. */
  state(): GeneratorState {
    return { seed: this.#seed, offset: this.#offset };
  }

  /** Continues from a state that state() returned. */
  setState(state: GeneratorState): void {
    checkState('setState', state);
    if (!Number.isSafeInteger(state.offset) || state.offset < 0) throw badState(state.offset);
    this.manualSeed(state.seed);
    this.#offset = state.offset;
  }

  /**
   * Reserves blocks with at least `words` words for a kernel. Returns the position of the first one and advances past
   * them. While a step is captured, the position is relative to the position of each run; see Stream.live. @internal
   */
  take(words: number): Stream {
    const capture = capturing()?.draw(this);
    const stream = capture ?? this.state();
    this.#offset += Math.ceil(words / 4);
    return stream;
  }

  /** Fills an array with uniform numbers in [low, high). Throws ERR_TENSOR_CAPTURE in a step that is captured. */
  uniform(out: Float32Array, low = 0, high = 1): void {
    refuseWhileCapturing('uniform() of a generator');
    fillUniform(out, this.take(out.length), low, high);
  }

  /** Fills an array with normal numbers of mean 0 and variance 1; throws as uniform does. */
  normal(out: Float32Array): void {
    refuseWhileCapturing('normal() of a generator');
    fillNormal(out, this.take(out.length));
  }
}

/** Makes a separate generator for `seed`. */
export const generator = (seed: number): Generator => new Generator(seed);

let shared: Generator | null = null;

/** Returns the generator that is used if none is given. Its seed is random until manualSeed is called. */
export function defaultGenerator(): Generator {
  shared ??= new Generator(getRandomValues(new Uint32Array(1))[0]!);
  return shared;
}

/** Seeds the default generator, so that its later numbers are the same in every run. Returns it. */
export function manualSeed(seed: number): Generator {
  return defaultGenerator().manualSeed(seed);
}
