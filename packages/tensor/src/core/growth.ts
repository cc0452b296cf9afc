// Notices a loop whose memory only grows. Tensors that are neither disposed nor referred to any more are
// given back by callbacks of the collector, and these run as tasks of the event loop: a loop that gives it no
// turn keeps everything.
//
// While memory grows and no turn has come, some of the storages that are made are sampled, weakly. A sample
// that the collector has taken, but whose callback has not run, is such memory; what a program still holds,
// such as a model or a data set, never is.
import { setImmediate } from 'node:timers';
import { inspect } from 'node:util';
import { callersPlace } from './leaks.ts';

/** Growth since the last turn from which on samples are taken. */
const sampleFrom = { count: 512, bytes: 2 ** 22 };
/** Growth at which they are looked at. */
const lookFrom = { count: 4096, bytes: 2 ** 25 };
/** One storage in this many is sampled, and each large one. */
const stride = 32;
const largeBytes = 2 ** 19;
/** Samples until the next look; a stack costs microseconds. */
const mostSamples = 512;
/** A few may be lost to what a program does once. */
const leastLost = 4;

/** A storage, while it is in use. */
interface Sampled {
  readonly memory: object;
  readonly bytes: number;
}

/** Where a storage was made. It marks itself when it is inspected, which happens to those that are still there. */
class Sample {
  readonly place: string;
  readonly bytes: number;
  isThere = false;

  constructor(place: string, bytes: number) {
    this.place = place;
    this.bytes = bytes;
  }

  [inspect.custom](): string {
    this.isThere = true;
    return '';
  }
}

let isReported = false;

/** The growth of one device's memory. */
export class Growth {
  /** Storages, and bytes, in use at which `look` is to be called. */
  atCount = sampleFrom.count;
  atBytes = sampleFrom.bytes;
  /** What was in use when samples began; null: there may have been a turn since. */
  #base: { readonly count: number; readonly bytes: number } | null = null;
  #births = 0;
  #taken = 0;
  /** By the memory of their storages, until it is released. */
  readonly #samples = new Map<object, Sample>();
  /** Those whose storages the collector has not taken. */
  #living = new WeakMap<Sampled, Sample>();

  /** Called where the memory in use has reached `atCount` or `atBytes`. */
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
    const lost = this.#lost();
    if (lost.length >= leastLost && 2 * lost.length >= this.#samples.size) {
      this.#end();
      report(count - base.count, bytes - base.bytes, placeOf(lost));
      return;
    }
    // The collector may not have run yet, or all is held: look again when it has grown by another quarter.
    this.#lookAt(
      base.count + Math.max(lookFrom.count, Math.ceil(1.25 * (count - base.count))),
      base.bytes + Math.max(lookFrom.bytes, Math.ceil(1.25 * (bytes - base.bytes))),
    );
  }

  /** A storage has come into use. */
  born(storage: Sampled): void {
    if (this.#base === null) return;
    if (this.#births++ % stride !== 0 && storage.bytes < largeBytes) return;
    if (this.#taken++ >= mostSamples) return;
    const sample = new Sample(callersPlace(), storage.bytes);
    this.#samples.set(storage.memory, sample);
    this.#living.set(storage, sample);
  }

  /** Memory is not in use any more. */
  ended(memory: object): void {
    if (this.#base !== null) this.#samples.delete(memory);
  }

  #lookAt(count: number, bytes: number): void {
    this.atCount = count;
    this.atBytes = bytes;
    this.#taken = 0;
  }

  /** The event loop has had a turn: the collector's callbacks could run. */
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

  /** Samples whose storages the collector has taken. */
  #lost(): Sample[] {
    const samples = [...this.#samples.values()];
    for (const sample of samples) sample.isThere = false;
    inspect(this.#living, { showHidden: true, depth: 0, maxArrayLength: null, customInspect: true });
    return samples.filter(({ isThere }) => !isThere);
  }

  #end(): void {
    this.#forget();
    this.#lookAt(Infinity, Infinity);
  }
}

/** The place that made most of the bytes. */
function placeOf(samples: readonly Sample[]): string {
  const bytesBy = new Map<string, number>();
  for (const { place, bytes } of samples) bytesBy.set(place, (bytesBy.get(place) ?? 0) + bytes);
  return [...bytesBy].reduce((most, next) => (next[1] > most[1] ? next : most))[0];
}

/** Once a thread, and at once: process.emitWarning would wait for the turn that does not come. */
function report(count: number, bytes: number, place: string): void {
  isReported = true;
  const message =
    `tensor: ${count} tensors (${(bytes / 2 ** 20).toFixed(1)} MiB) more than at the last turn of the event loop, most ` +
    `of them not used any more and not disposed, made ${place}. The collector gives them back at the next turn only. ` +
    'Put each step into scope(), declare tensors with using, or await a turn of the event loop.';
  const warning = Object.assign(new Error(message), { name: 'RingwiseWarning', code: 'RINGWISE_UNDISPOSED' });
  process.emit('warning', warning);
}
