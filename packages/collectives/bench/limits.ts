// Measures what this machine can do while the benchmark runs, so that results of different moments and machines can be
// compared: the time to pass a cache line between two cores and back, and the time to copy the bytes of the vector on
// all ranks at once. No library can be faster than about these two together.
import { Worker } from 'node:worker_threads';
import type { Group } from '../src/group/group.ts';

/** A sample passes a line this often; as many samples as fit in `hopMs`. */
const passes = 20;
const hopMs = 20;
const fewestSamples = 5;
const copyMs = 20;
const mostSamples = 200;

/** Numbers that two threads share, each in a cache line of its own. */
const at = { isOn: 0, question: 32, answer: 64 } as const;

/** Runs in a thread: while it is on, it copies each number from `question` to `answer`. */
const answerer = `
  const { line, at } = require('node:worker_threads').workerData;
  for (;;) {
    Atomics.wait(line, at.isOn, 0);
    while (Atomics.load(line, at.isOn) === 1) Atomics.store(line, at.answer, Atomics.load(line, at.question));
  }`;

/** Measures the limits of the machine. Collective: all ranks of the group call all methods. */
export class Limits {
  readonly #group: Group;
  /** On rank 0 only. */
  readonly #worker: Worker | undefined;
  readonly #line = new Int32Array(new SharedArrayBuffer(1024));

  constructor(group: Group) {
    this.#group = group;
    if (group.rank !== 0) return;
    this.#worker = new Worker(answerer, { eval: true, workerData: { line: this.#line, at } });
    this.#worker.unref();
  }

  /** Returns the limit for a vector of `bytes` in microseconds, the same on all ranks. */
  async at(bytes: number): Promise<number> {
    const all = Float64Array.of(this.#worker ? this.#hopUs() : 0, 0);
    await this.#group.barrier();
    all[1] = bytes === 0 ? 0 : copyUs(bytes);
    await this.#group.allReduce(all, { op: 'max' });
    return 2 * all[0]! + all[1]!;
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  /** Returns the microseconds in which a cache line reaches the other core. */
  #hopUs(): number {
    Atomics.store(this.#line, at.isOn, 1);
    Atomics.notify(this.#line, at.isOn);
    this.#passUs(); // until the thread runs
    const samples: number[] = [];
    const start = performance.now();
    while (samples.length < fewestSamples || performance.now() - start < hopMs) samples.push(this.#passUs());
    Atomics.store(this.#line, at.isOn, 0);
    return median(samples);
  }

  #passUs(): number {
    const line = this.#line;
    const start = performance.now();
    for (let i = 0; i < passes; i++) {
      const question = Atomics.add(line, at.question, 1) + 1;
      while (Atomics.load(line, at.answer) !== question);
    }
    return ((performance.now() - start) * 1000) / passes / 2;
  }
}

/** Returns the microseconds in which this rank copies the bytes. */
function copyUs(bytes: number): number {
  const from = new Uint8Array(bytes).fill(1);
  const to = new Uint8Array(bytes);
  const timeMs = (copies: number) => {
    const start = performance.now();
    for (let i = 0; i < copies; i++) to.set(from);
    return (performance.now() - start) / copies;
  };
  const roughMs = Math.max(timeMs(Math.ceil(2 ** 20 / bytes)), 1e-6);
  const batch = Math.ceil(0.02 / roughMs);
  const count = Math.min(Math.max(Math.round(copyMs / (roughMs * batch)), fewestSamples), mostSamples);
  return 1000 * median(Array.from({ length: count }, () => timeMs(batch)));
}

const median = (samples: number[]) => samples.sort((a, b) => a - b)[samples.length >> 1]!;
