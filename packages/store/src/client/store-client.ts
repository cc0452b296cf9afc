// The base class of MemoryStore, FileStore and TcpStore. It checks arguments and turns calls into operations; each
// store defines how it executes an operation and how it waits.

import { checkMap, checkNames, checkTimeout, waitOptionNames } from '../check-options.ts';
import { badArgument, outOfRange, tooLarge } from '../errors.ts';
import type { Operation } from '../server/operations.ts';
import * as operation from '../server/operations.ts';
import type { Store, WaitOptions } from '../store.ts';
import { maxKeyBytes, maxKeysPerRequest, maxRequestBytes, maxValueBytes } from '../wire/wire.ts';

export const defaultTimeoutMs = 300_000;

/** A call that waits until all its keys exist. */
export interface Wait {
  readonly verb: string;
  /** Keys as the caller named them, for messages. */
  readonly names: readonly string[];
  /** The same keys in their stored form. */
  readonly keys: readonly string[];
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

export abstract class StoreClient implements Store {
  readonly timeoutMs: number;

  constructor(timeoutMs: number = defaultTimeoutMs) {
    this.timeoutMs = checkTimeout('open', timeoutMs);
  }

  /** Executes an operation that does not wait. Operations take effect in call order. */
  protected abstract send<T>(verb: string, operation: Operation<T>): Promise<T>;
  /** Waits until the keys exist, then executes `then`. With TcpStore, a key may have been deleted in between. */
  protected abstract whenPresent<T>(wait: Wait, then: Operation<T>): Promise<T>;
  abstract close(): Promise<void>;

  async set(key: string, value: Uint8Array | string): Promise<void> {
    await this.send('set', operation.set(wireKey('set', key), bytesOf('set', value)));
  }

  async get(key: string, options?: WaitOptions): Promise<Uint8Array> {
    const wait = this.#wait('get', [key], options);
    return await this.whenPresent(wait, operation.get(wait.keys[0]!));
  }

  async add(key: string, amount: number): Promise<number> {
    if (!Number.isSafeInteger(amount)) throw badArgument('add', 'amount to be a safe integer', amount);
    const sum = await this.send('add', operation.add(wireKey('add', key), BigInt(amount)));
    if (!Number.isSafeInteger(Number(sum))) throw outOfRange('add', sum);
    return Number(sum);
  }

  async compareSet(
    key: string,
    expected: Uint8Array | string,
    desired: Uint8Array | string,
  ): Promise<Uint8Array> {
    const bytes = [bytesOf('compareSet', expected), bytesOf('compareSet', desired)] as const;
    return await this.send('compareSet', operation.compareSet(wireKey('compareSet', key), ...bytes));
  }

  async wait(keys: readonly string[], options?: WaitOptions): Promise<void> {
    const wait = this.#wait('wait', keys, options);
    await this.whenPresent(wait, operation.nothing);
  }

  async check(keys: readonly string[]): Promise<boolean> {
    return await this.send('check', operation.check(wireKeys('check', keys)));
  }

  async delete(key: string): Promise<boolean> {
    return await this.send('delete', operation.remove(wireKey('delete', key)));
  }

  async numKeys(): Promise<number> {
    return Number(await this.send('numKeys', operation.numKeys));
  }

  async append(key: string, value: Uint8Array | string): Promise<void> {
    await this.send('append', operation.append(wireKey('append', key), bytesOf('append', value)));
  }

  async multiGet(keys: readonly string[], options?: WaitOptions): Promise<Uint8Array[]> {
    const wait = this.#wait('multiGet', keys, options);
    return await this.whenPresent(wait, operation.multiGet(wait.keys));
  }

  async multiSet(entries: ReadonlyMap<string, Uint8Array | string>): Promise<void> {
    checkMap('multiSet', entries);
    checkCount('multiSet', entries.size);
    const pairs = [...entries].map(
      ([key, value]) => [wireKey('multiSet', key), bytesOf('multiSet', value)] as const,
    );
    checkSize('multiSet', pairs.flat());
    await this.send('multiSet', operation.multiSet(pairs));
  }

  #wait(verb: string, names: readonly string[], options: WaitOptions = {}): Wait {
    checkNames(verb, options, waitOptionNames);
    const keys = wireKeys(verb, names);
    return {
      verb,
      names: [...names],
      keys,
      timeoutMs: checkTimeout(verb, options.timeoutMs ?? this.timeoutMs),
      signal: options.signal,
    };
  }
}

/**
 * Returns the stored form of a key, with one character for each byte of UTF-8. TCPStore puts a slash before every key
 * of a user.
 */
function wireKey(verb: string, key: string): string {
  if (typeof key !== 'string' || key === '') throw badArgument(verb, 'a key to be a non-empty string', key);
  const bytes = Buffer.from(`/${key}`);
  if (bytes.length > maxKeyBytes)
    throw tooLarge(verb, 'a key, with its leading slash,', maxKeyBytes, bytes.length);
  return bytes.toString('latin1');
}

function wireKeys(verb: string, keys: readonly string[]): string[] {
  if (!Array.isArray(keys)) throw badArgument(verb, 'an array of keys', keys);
  checkCount(verb, keys.length);
  const named = keys.map((key) => wireKey(verb, key));
  checkSize(verb, named);
  return named;
}

function checkCount(verb: string, count: number): void {
  if (count > maxKeysPerRequest) throw badArgument(verb, `at most ${maxKeysPerRequest} keys`, count);
}

function checkSize(verb: string, parts: readonly (string | Uint8Array)[]): void {
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  if (bytes > maxRequestBytes) throw tooLarge(verb, 'all keys and values together', maxRequestBytes, bytes);
}

/** Returns a value's bytes, as a copy, because the caller may change its array after the call. */
function bytesOf(verb: string, value: Uint8Array | string): Uint8Array {
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) {
    throw badArgument(verb, 'a value to be a Uint8Array or a string', value);
  }
  const bytes = new Uint8Array(typeof value === 'string' ? Buffer.from(value) : value);
  if (bytes.byteLength > maxValueBytes) throw tooLarge(verb, 'a value', maxValueBytes, bytes.byteLength);
  return bytes;
}
