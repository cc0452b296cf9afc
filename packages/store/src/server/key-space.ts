// The state of a store and the meaning of every request, without clients, deadlines or wire format. MemoryStore,
// FileStore and the TCP server use this class, so that all stores behave alike. All methods are synchronous and
// therefore atomic. Values that are passed in or returned are shared and must not be changed.

import { notANumber, tooLarge } from '../errors.ts';
import { maxValueBytes } from '../wire/wire.ts';

interface Watch {
  readonly keys: readonly string[];
  readonly missing: Set<string>;
  readonly done: () => void;
}

interface BarrierEntry {
  readonly world: bigint;
  readonly done: () => void;
}

const decimal = /^[+-]?\d{1,19}$/;
const none = () => {};

export class KeySpace {
  readonly #values = new Map<string, Uint8Array>();
  readonly #queues = new Map<string, Uint8Array[]>();
  readonly #watches = new Map<string, Set<Watch>>(); // by each key that a watch still misses
  readonly #barriers = new Map<string, Set<BarrierEntry>>();

  /** Number of keys that have a value. Queues do not count. */
  get size(): number {
    return this.#values.size;
  }

  /** Returns the keys that have a value. */
  keys(): string[] {
    return [...this.#values.keys()];
  }

  /** Returns whether `key` has a value or a queue that is not empty. */
  has(key: string): boolean {
    return this.#values.has(key) || this.#queues.has(key);
  }

  get(key: string): Uint8Array | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: Uint8Array): void {
    this.#values.set(key, value);
    for (const watch of this.#unparked(key)) this.#arrived(watch, key);
  }

  append(key: string, value: Uint8Array): void {
    const before = this.#values.get(key);
    const bytes = (before?.byteLength ?? 0) + value.byteLength;
    if (bytes > maxValueBytes) throw tooLarge('append', 'the value', maxValueBytes, bytes);
    const joined = new Uint8Array(bytes);
    if (before) joined.set(before);
    joined.set(value, before?.byteLength ?? 0);
    this.set(key, joined);
  }

  add(key: string, amount: bigint): bigint {
    const before = this.#values.get(key);
    const text = before ? Buffer.from(before).toString('latin1') : '0';
    if (!decimal.test(text)) throw notANumber(key);
    const sum = BigInt(text) + amount;
    if (BigInt.asIntN(64, sum) !== sum) throw notANumber(key);
    this.set(key, new Uint8Array(Buffer.from(String(sum))));
    return sum;
  }

  compareSet(key: string, expected: Uint8Array, desired: Uint8Array): Uint8Array {
    const present = this.#values.get(key);
    const isSwap = present ? Buffer.compare(present, expected) === 0 : expected.byteLength === 0;
    if (!isSwap) return present ?? expected;
    this.set(key, desired);
    return desired;
  }

  delete(key: string): boolean {
    return this.#values.delete(key);
  }

  queuePush(key: string, value: Uint8Array): void {
    const queue = this.#queues.get(key);
    if (queue) queue.push(value);
    else this.#queues.set(key, [value]);
    // One item satisfies one waiter.
    const watches = this.#watches.get(key);
    const first = watches?.values().next().value;
    if (!watches || !first) return;
    watches.delete(first);
    if (watches.size === 0) this.#watches.delete(key);
    this.#arrived(first, key);
  }

  queuePop(key: string): Uint8Array | undefined {
    const queue = this.#queues.get(key);
    const value = queue?.shift();
    if (queue?.length === 0) this.#queues.delete(key);
    return value;
  }

  queueLength(key: string): number {
    return this.#queues.get(key)?.length ?? 0;
  }

  /**
   * Calls `done` when all keys exist at the same time; at once if they do already. Returns a function that withdraws
   * the watch.
   */
  watch(keys: readonly string[], done: () => void): () => void {
    const watch: Watch = { keys, done, missing: new Set(keys.filter((key) => !this.has(key))) };
    if (watch.missing.size === 0) {
      done();
      return none;
    }
    this.#park(watch);
    return () => {
      for (const key of watch.missing) remove(this.#watches, key, watch);
    };
  }

  /**
   * Counts one arrival under `key` and calls `done` once `world` have arrived. The count is never reset. Returns a
   * function that withdraws `done`; the arrival still counts.
   */
  barrier(key: string, world: bigint, done: () => void): () => void {
    const arrived = this.add(key, 1n);
    const entry: BarrierEntry = { world, done };
    insert(this.#barriers, key, entry);
    for (const waiting of [...(this.#barriers.get(key) ?? [])]) {
      if (arrived < waiting.world) continue;
      remove(this.#barriers, key, waiting);
      waiting.done();
    }
    return () => remove(this.#barriers, key, entry);
  }

  /** Makes a watch wait for the keys that it misses. */
  #park(watch: Watch): void {
    for (const key of watch.missing) insert(this.#watches, key, watch);
  }

  /** Removes and returns the watches that wait for `key`. */
  #unparked(key: string): Iterable<Watch> {
    const watches = this.#watches.get(key) ?? [];
    this.#watches.delete(key);
    return watches;
  }

  /** Notifies a watch, which no longer waits for `key`, that the key exists. */
  #arrived(watch: Watch, key: string): void {
    watch.missing.delete(key);
    if (watch.missing.size > 0) return;
    // A key that existed earlier may have been deleted since.
    for (const each of watch.keys) if (!this.has(each)) watch.missing.add(each);
    if (watch.missing.size > 0) this.#park(watch);
    else watch.done();
  }
}

function insert<T>(map: Map<string, Set<T>>, key: string, item: T): void {
  const items = map.get(key);
  if (items) items.add(item);
  else map.set(key, new Set([item]));
}

function remove<T>(map: Map<string, Set<T>>, key: string, item: T): void {
  const items = map.get(key);
  items?.delete(item);
  if (items?.size === 0) map.delete(key);
}
