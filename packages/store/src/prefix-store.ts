import { checkMap, checkNames, waitOptionNames } from './check-options.ts';
import { badArgument, closed } from './errors.ts';
import { anyOf } from './server/signals.ts';
import type { Store, WaitOptions } from './store.ts';

/**
 * A view of a store in which key `k` stands for `prefix/k`, as in torch's PrefixStore. Errors name keys with their
 * prefix, and numKeys() counts the keys of the whole store. close() ends only the view, not the store.
 */
export class PrefixStore implements Store {
  readonly timeoutMs: number;
  readonly #prefix: string;
  readonly #store: Store;
  readonly #ended = new AbortController();

  constructor(prefix: string, store: Store) {
    if (typeof prefix !== 'string') throw badArgument('PrefixStore', 'prefix to be a string', prefix);
    if (typeof store?.get !== 'function')
      throw badArgument('PrefixStore', 'a store behind the prefix', store);
    this.timeoutMs = store.timeoutMs;
    this.#prefix = prefix;
    this.#store = store;
  }

  async set(key: string, value: Uint8Array | string): Promise<void> {
    await this.#open.set(this.#key('set', key), value);
  }

  async get(key: string, options?: WaitOptions): Promise<Uint8Array> {
    const [store, whole] = [this.#open, this.#key('get', key)];
    return await this.#waiting('get', options, (own) => store.get(whole, own));
  }

  async add(key: string, amount: number): Promise<number> {
    return await this.#open.add(this.#key('add', key), amount);
  }

  async compareSet(
    key: string,
    expected: Uint8Array | string,
    desired: Uint8Array | string,
  ): Promise<Uint8Array> {
    return await this.#open.compareSet(this.#key('compareSet', key), expected, desired);
  }

  async wait(keys: readonly string[], options?: WaitOptions): Promise<void> {
    const [store, whole] = [this.#open, this.#keys('wait', keys)];
    await this.#waiting('wait', options, (own) => store.wait(whole, own));
  }

  async check(keys: readonly string[]): Promise<boolean> {
    return await this.#open.check(this.#keys('check', keys));
  }

  async delete(key: string): Promise<boolean> {
    return await this.#open.delete(this.#key('delete', key));
  }

  async numKeys(): Promise<number> {
    return await this.#open.numKeys();
  }

  async append(key: string, value: Uint8Array | string): Promise<void> {
    await this.#open.append(this.#key('append', key), value);
  }

  async multiGet(keys: readonly string[], options?: WaitOptions): Promise<Uint8Array[]> {
    const [store, whole] = [this.#open, this.#keys('multiGet', keys)];
    return await this.#waiting('multiGet', options, (own) => store.multiGet(whole, own));
  }

  async multiSet(entries: ReadonlyMap<string, Uint8Array | string>): Promise<void> {
    checkMap('multiSet', entries);
    const pairs = [...entries].map(([key, value]) => [this.#key('multiSet', key), value] as const);
    await this.#open.multiSet(new Map(pairs));
  }

  async close(): Promise<void> {
    this.#ended.abort(closed(`prefix ${this.#prefix}`));
  }

  get #open(): Store {
    this.#ended.signal.throwIfAborted();
    return this.#store;
  }

  #key(verb: string, key: string): string {
    if (typeof key !== 'string' || key === '') throw badArgument(verb, 'a key to be a non-empty string', key);
    return `${this.#prefix}/${key}`;
  }

  #keys(verb: string, keys: readonly string[]): string[] {
    if (!Array.isArray(keys)) throw badArgument(verb, 'an array of keys', keys);
    return keys.map((key) => this.#key(verb, key));
  }

  /** Runs a waiting call with a signal that close() aborts. */
  async #waiting<T>(
    verb: string,
    options: WaitOptions = {},
    wait: (own: WaitOptions) => Promise<T>,
  ): Promise<T> {
    checkNames(verb, options, waitOptionNames);
    const { signal, release } = anyOf([options.signal, this.#ended.signal]);
    return await wait({ ...options, signal }).finally(release);
  }
}
