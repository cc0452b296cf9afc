// The operations of clients, defined once for all stores. `run` executes an operation on a key space in this process
// (MemoryStore, FileStore). `frame` encodes it as a request, for a connection or a file; `reply` parses the reply.

import { malformed } from '../errors.ts';
import type { Reading } from '../wire/byte-queue.ts';
import {
  bytesArgument,
  keyArgument,
  keysArgument,
  pingNonce,
  readByte,
  readI64,
  readValue,
  typeByte,
  u64,
} from '../wire/wire.ts';
import type { KeySpace } from './key-space.ts';

export interface Operation<T> {
  readonly frame: () => Buffer;
  readonly reply: () => Reading<T>;
  /** True if the operation does not change the space. */
  readonly isRead: boolean;
  /**
   * True if the request has no reply of its own. The client then sends a ping after it, and `reply` parses
   * the echo.
   */
  readonly isSilent: boolean;
  readonly run: (space: KeySpace) => T;
}

export const set = (key: string, value: Uint8Array): Operation<void> => ({
  frame: () => Buffer.concat([typeByte('set'), keyArgument(key), bytesArgument(value)]),
  reply: readEcho,
  isRead: false,
  isSilent: true,
  run: (space) => space.set(key, value),
});

export const append = (key: string, value: Uint8Array): Operation<void> => ({
  frame: () => Buffer.concat([typeByte('append'), keyArgument(key), bytesArgument(value)]),
  reply: readEcho,
  isRead: false,
  isSilent: true,
  run: (space) => space.append(key, value),
});

export const multiSet = (entries: readonly (readonly [string, Uint8Array])[]): Operation<void> => ({
  frame: () =>
    Buffer.concat([
      typeByte('multiSet'),
      u64(entries.length),
      ...entries.flatMap(([key, value]) => [keyArgument(key), bytesArgument(value)]),
    ]),
  reply: readEcho,
  isRead: false,
  isSilent: true,
  run: (space) => {
    for (const [key, value] of entries) space.set(key, value);
  },
});

export const get = (key: string): Operation<Uint8Array> => ({
  frame: () => Buffer.concat([typeByte('get'), keyArgument(key)]),
  reply: readValue,
  isRead: true,
  isSilent: false,
  run: (space) => copyOf(space.get(key)),
});

export const multiGet = (keys: readonly string[]): Operation<Uint8Array[]> => ({
  frame: () => Buffer.concat([typeByte('multiGet'), keysArgument(keys)]),
  reply: () => readValues(keys.length),
  isRead: true,
  isSilent: false,
  run: (space) => keys.map((key) => copyOf(space.get(key))),
});

export const compareSet = (
  key: string,
  expected: Uint8Array,
  desired: Uint8Array,
): Operation<Uint8Array> => ({
  frame: () =>
    Buffer.concat([
      typeByte('compareSet'),
      keyArgument(key),
      bytesArgument(expected),
      bytesArgument(desired),
    ]),
  reply: readValue,
  isRead: false,
  isSilent: false,
  run: (space) => copyOf(space.compareSet(key, expected, desired)),
});

export const add = (key: string, amount: bigint): Operation<bigint> => ({
  frame: () => Buffer.concat([typeByte('add'), keyArgument(key), u64(amount)]),
  reply: readI64,
  isRead: false,
  isSilent: false,
  run: (space) => space.add(key, amount),
});

export const remove = (key: string): Operation<boolean> => ({
  frame: () => Buffer.concat([typeByte('delete'), keyArgument(key)]),
  reply: readRemoved,
  isRead: false,
  isSilent: false,
  run: (space) => space.delete(key),
});

export const check = (keys: readonly string[]): Operation<boolean> => ({
  frame: () => Buffer.concat([typeByte('check'), keysArgument(keys)]),
  reply: readPresence,
  isRead: true,
  isSilent: false,
  run: (space) => keys.every((key) => space.has(key)),
});

export const numKeys: Operation<bigint> = {
  frame: () => typeByte('numKeys'),
  reply: readI64,
  isRead: true,
  isSilent: false,
  run: (space) => BigInt(space.size),
};

/** Does nothing and sends nothing. It follows a wait that needs no values. */
export const nothing: Operation<void> = {
  frame: () => Buffer.alloc(0),
  reply: function* () {},
  isRead: true,
  isSilent: false,
  run: () => {},
};

// These generators are defined once instead of per call: V8 keeps a list of generator functions that it rarely cleans.

export function* readEcho(): Reading<void> {
  const echo = yield pingNonce.length;
  if (!echo.equals(pingNonce)) throw malformed('echo of a ping', echo.toString('hex'));
}

function* readValues(count: number): Reading<Uint8Array[]> {
  const values: Uint8Array[] = [];
  while (values.length < count) values.push(yield* readValue());
  return values;
}

function* readRemoved(): Reading<boolean> {
  return (yield* readI64()) === 1n;
}

function* readPresence(): Reading<boolean> {
  const byte = yield* readByte();
  if (byte > 1) throw malformed('reply to check', byte);
  return byte === 0;
}

/** Returns a copy, because values that leave a space belong to the caller. */
function copyOf(value: Uint8Array | undefined): Uint8Array {
  return new Uint8Array(value ?? []);
}
