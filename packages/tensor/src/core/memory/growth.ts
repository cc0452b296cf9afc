// Warns about a loop whose memory only grows. Memory of tensors that were collected without dispose() is
// freed by callbacks of the garbage collector, which run as tasks of the event loop: a loop that never yields
// to the event loop keeps all of it.
//
// While memory grows without a turn of the event loop, some new storages are sampled by weak references. A
// sample that has been collected, but whose callback has not run, is such memory. Memory that a program still
// holds, such as a model or a data set, is never counted.
import { setImmediate } from 'node:timers';
import { callersPlace } from './leaks.ts';
import { Survivor, taken } from './survivors.ts';

/** Sampling begins when the use has grown by this much since the last turn of the event loop. */
const sampleFrom = { count: 512, bytes: 2 ** 22 };
/** The samples are examined when the use has grown by this much since sampling began. */
const lookFrom = { count: 4096, bytes: 2 ** 25 };
/** One storage in this many is sampled, and each large one. */
const stride = 32;
const largeBytes = 2 ** 19;
/** Maximum number of samples between two examinations; the stack of a sample costs microseconds. */
const mostSamples = 512;
/** Minimum number of lost samples for a report: a few may come from work that a program does once. */
const leastLost = 4;

/** A storage, while it is in use. */
interface Sampled {
  readonly claim: object;
  readonly bytes: number;
}

/** The line that made a sampled storage, and its size. */
class Sample extends Survivor {
  readonly location: string;
  readonly bytes: number;

  constructor(location: string, bytes: number) {
    super();
    this.location = location;
    this.bytes = bytes;
  }
}

let isReported = false;

/** The growth of one device's memory. */
export class Growth {
  /** The numbers of storages and of bytes in use at which `look` must be called. */
  atCount = sampleFrom.count;
  atBytes = sampleFrom.bytes;
  /** The use when sampling began; null while nothing is sampled. */
  #base: { readonly count: number; readonly bytes: number } | null = null;
  #births = 0;
  /** Number of samples since the last examination. */
  #sampled = 0;
  /** Samples by the claims of their storages, until these are released. */
  readonly #samples = new Map<object, Sample>();
  /** Samples by their storages, until these are garbage-collected. */
  #living = new WeakMap<Sampled, Sample>();

  /** Begins sampling, or examines the samples. Called when the use has reached `atCount` or `atBytes`. */
  look(count: number, bytes: number): void {
    if (isReported) {
      this.#end();
      return;
    }
    const base = this.#base;
    if (base === null) {
      this.#base = { count, bytes };
      this.#lookAt(count + lookFrom.count, bytes + lookFrom.bytes);
      setImmediate(() => this.#turn(count, bytes)).unref();
      return;
    }
    const lost = taken(this.#living, this.#samples.values());
    if (lost.length >= leastLost && 2 * lost.length >= this.#samples.size) {
      this.#end();
      report(count - base.count, bytes - base.bytes, mainLocationOf(lost));
      return;
    }
    // The collector may not have run yet, or the program holds everything: examine again after a quarter more.
    this.#lookAt(
      base.count + Math.max(lookFrom.count, Math.ceil(1.25 * (count - base.count))),
      base.bytes + Math.max(lookFrom.bytes, Math.ceil(1.25 * (bytes - base.bytes))),
    );
  }

  /** Notes a storage that is now in use. */
  born(storage: Sampled): void {
    if (this.#base === null) return;
    if (this.#births++ % stride !== 0 && storage.bytes < largeBytes) return;
    if (this.#sampled++ >= mostSamples) return;
    const sample = new Sample(callersPlace(), storage.bytes);
    this.#samples.set(storage.claim, sample);
    this.#living.set(storage, sample);
  }

  /** Notes that the storage with this claim is no longer in use. */
  ended(claim: object): void {
    if (this.#base !== null) this.#samples.delete(claim);
  }

  #lookAt(count: number, bytes: number): void {
    this.atCount = count;
    this.atBytes = bytes;
    this.#sampled = 0;
  }

  /** Ends sampling after a turn of the event loop, in which the collector's callbacks could run. */
  #turn(count: number, bytes: number): void {
    if (isReported) return;
    this.#forget();
    this.#lookAt(count + sampleFrom.count, bytes + sampleFrom.bytes);
  }

  #forget(): void {
    this.#base = null;
    this.#samples.clear();
    this.#living = new WeakMap();
  }

  #end(): void {
    this.#forget();
    this.#lookAt(Infinity, Infinity);
  }
}

/** Returns the line that made most of the bytes. */
function mainLocationOf(samples: readonly Sample[]): string {
  const bytesBy = new Map<string, number>();
  for (const { location, bytes } of samples) bytesBy.set(location, (bytesBy.get(location) ?? 0) + bytes);
  return [...bytesBy].reduce((most, next) => (next[1] > most[1] ? next : most))[0];
}

/**
 * Warns once per thread, synchronously: process.emitWarning would wait for a turn of the event loop, which may never
 * come.
 */
function report(count: number, bytes: number, location: string): void {
  isReported = true;
  const message =
    `tensor: ${count} tensors (${(bytes / 2 ** 20).toFixed(1)} MiB) more than at the last turn of the event loop, most ` +
    `of them not used any more and not disposed, made ${location}. The collector gives them back at the next turn only. ` +
    'Put each step into scope(), declare tensors with using, or await a turn of the event loop.';
  const warning = Object.assign(new Error(message), { name: 'RingwiseWarning', code: 'RINGWISE_UNDISPOSED' });
  process.emit('warning', warning);
}
