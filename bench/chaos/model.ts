// The training of the chaos bench: linear regression by SGD with momentum, in float32, on samples that are a function
// of their index. Each micro-batch is one addend of the gradient's sum, and the sum is reproducible, so the
// parameters after each step do not depend on which ranks trained: a run is replayed by one process without faults.

import type { Group } from '@ringwise/collectives';
import {
  type Cursor,
  firstCursor,
  Ledger,
  type MicroBatch,
  ownedBy,
  type StepPlan,
} from '../../packages/elastic/src/ledger/ledger.ts';

/** Divides evenly among 1, 2, 3 and 4 ranks, so that the time of a step is inversely proportional to their number. */
export const microBatchesPerStep = 24;
const samplesPerMicroBatch = 2;
export const samplesPerStep = microBatchesPerStep * samplesPerMicroBatch;
const samples = 100 * samplesPerStep;
const [learningRate, momentum] = [0.01, 0.9];

/** Returns a number from -1 to 1 that depends on `n` only: the finalizer of MurmurHash3. */
function noise(n: number): number {
  let h = Math.imul(n ^ (n >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) / 2 ** 31 - 1;
}

export class Model {
  readonly weights: Float32Array;
  readonly velocity: Float32Array;
  /** The averaged gradient of the step in flight. */
  readonly gradient: Float32Array;
  readonly #ledger = new Ledger(samples, {
    globalBatch: samplesPerStep,
    microBatch: samplesPerMicroBatch,
    seed: 1,
  });
  cursor: Cursor = firstCursor;
  /** Number of steps that have been applied. */
  steps = 0;

  constructor(parameters: number) {
    this.weights = Float32Array.from({ length: parameters }, (_, i) => noise(i + 1));
    this.velocity = new Float32Array(parameters);
    this.gradient = new Float32Array(parameters);
  }

  plan(size: number): StepPlan {
    return this.#ledger.stepAt(this.cursor, size);
  }

  owned(plan: StepPlan, rank: number, size: number): readonly MicroBatch[] {
    return ownedBy(plan, rank, size);
  }

  /** Returns the gradient of the squared error over a micro-batch. */
  gradientOf(batch: MicroBatch): Float32Array {
    const { weights } = this;
    const sum = new Float32Array(weights.length);
    const scale = 1 / Math.sqrt(weights.length);
    for (const index of this.#ledger.indicesOf(batch)) {
      const input = Float32Array.from(weights, (_, i) => noise(index * weights.length + i));
      let error = -noise(index + 7);
      for (let i = 0; i < weights.length; i++) error += weights[i]! * input[i]! * scale;
      for (let i = 0; i < weights.length; i++) sum[i]! += error * input[i]! * scale;
    }
    return sum;
  }

  /** Averages the gradients of all micro-batches of a step. Collective. */
  async reduce(group: Group, contributions: Float32Array[]): Promise<void> {
    await group.allReduce(this.gradient, { op: 'avg', contributions });
  }

  /** Makes the step in flight final. */
  apply(plan: StepPlan): void {
    const { weights, velocity, gradient } = this;
    for (let i = 0; i < weights.length; i++) {
      velocity[i] = Math.fround(momentum * velocity[i]!) + gradient[i]! / samplesPerMicroBatch;
      weights[i] = weights[i]! - Math.fround(learningRate * velocity[i]!);
    }
    this.cursor = this.#ledger.after(plan);
    this.steps++;
  }

  /** Returns the state as bits in 64 digits: equal states have equal texts. */
  bits(hash: (bytes: Uint8Array) => string): string {
    const [a, b] = [this.weights, this.velocity].map(({ buffer }) => new Uint8Array(buffer)) as [
      Uint8Array,
      Uint8Array,
    ];
    return hash(Buffer.concat([a, b, Buffer.from(JSON.stringify([this.steps, this.cursor]))]));
  }

  save(): unknown {
    return { weights: this.weights, velocity: this.velocity, cursor: { ...this.cursor }, steps: this.steps };
  }

  load(state: unknown): void {
    const { weights, velocity, cursor, steps } = state as Pick<
      Model,
      'weights' | 'velocity' | 'cursor' | 'steps'
    >;
    this.weights.set(weights);
    this.velocity.set(velocity);
    this.cursor = { ...cursor };
    this.steps = steps;
  }
}
