// The wire format of the TCPStore protocol of torch 2.4 and newer. A request is one type byte and its
// arguments. Integers are little endian; bytes are a u64 length and the raw bytes; a list is a u64 count and
// its items. Requests have no id: replies come in the order of the requests. Keys are handled as strings with
// one character per byte (latin1), so that any bytes are preserved.

import { malformed } from '../errors.ts';
import type { Reading } from './byte-queue.ts';

export const maxKeyBytes = 8 * 1024;
export const maxValueBytes = 8 * 1024 * 1024;
export const maxKeysPerRequest = 128 * 1024;
/** Maximum size of all keys and values of one request together. The server holds them until the request is complete. */
export const maxRequestBytes = 64 * 1024 * 1024;

/** Names of the requests, indexed by their type byte, since torch 2.1. */
export const requestKinds = [
  'validate',
  'set',
  'compareSet',
  'get',
  'add',
  'check',
  'wait',
  'numKeys',
  'delete',
  'append',
  'multiGet',
  'multiSet',
  'cancelWait',
  'ping',
  'queuePush',
  'queuePop',
  'queueLength',
  'listKeys',
  'barrier',
] as const;

export type RequestKind = (typeof requestKinds)[number] | 'watchKey';

/** Names of the requests of torch 1.13 and 2.0, indexed by their type byte. These versions had no validate. */
export const oldRequestKinds = [
  'set',
  'compareSet',
  'get',
  'add',
  'check',
  'wait',
  'numKeys',
  'watchKey',
  'delete',
  'append',
  'multiGet',
  'multiSet',
  'cancelWait',
] as const satisfies readonly RequestKind[];

/** Returns the type byte of a request in the current numbering. */
export function typeByte(kind: (typeof requestKinds)[number]): Buffer {
  return Buffer.of(requestKinds.indexOf(kind));
}

/** Reply to a wait or a barrier that is over. */
export const stopWaiting = Buffer.of(0);
/** Reply to cancelWait. */
export const waitCancelled = Buffer.of(1);
export const validateMagic = Buffer.from('cef7853c', 'hex');

// A torch 1.13 server takes validate for set, and the magic, the ping and its nonce for the length of a key. With this
// nonce the length is impossible, and the server resets the connection at once. With a small nonce it would try to
// allocate tens of gigabytes.
export const pingNonce = Buffer.from('ffffffff', 'hex');
export const pingRequest = Buffer.concat([typeByte('ping'), pingNonce]);

/** Encodes a 64-bit integer; a negative one in two's complement. */
export function u64(value: number | bigint): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigInt64LE(BigInt(value));
  return bytes;
}

/** Encodes bytes, preceded by their length. */
export function bytesArgument(value: Uint8Array): Buffer {
  return Buffer.concat([u64(value.byteLength), value]);
}

export function keyArgument(key: string): Buffer {
  return bytesArgument(Buffer.from(key, 'latin1'));
}

export function keysArgument(keys: readonly string[]): Buffer {
  return Buffer.concat([u64(keys.length), ...keys.map(keyArgument)]);
}

export function* readByte(): Reading<number> {
  return (yield 1)[0]!;
}

export function* readI64(): Reading<bigint> {
  return (yield 8).readBigInt64LE();
}

function* readLength(what: string, limit: number): Reading<number> {
  const length = (yield 8).readBigUInt64LE();
  if (length > BigInt(limit)) throw malformed(`${what} (at most ${limit})`, length);
  return Number(length);
}

/** Parses a key. `room` is the number of bytes that keys and values of the request may still have. */
export function* readKey(room = maxKeyBytes): Reading<string> {
  return (yield yield* readLength('key length', Math.min(room, maxKeyBytes))).toString('latin1');
}

/** Parses a value. Returns a copy, so that a small value does not keep a whole network buffer alive. */
export function* readValue(room = maxValueBytes): Reading<Uint8Array> {
  return new Uint8Array(yield yield* readLength('value length', Math.min(room, maxValueBytes)));
}

export function* readCount(): Reading<number> {
  return yield* readLength('number of keys', maxKeysPerRequest);
}

export function* readKeys(): Reading<string[]> {
  const keys: string[] = [];
  let room = maxRequestBytes;
  for (let left = yield* readCount(); left > 0; left--) {
    const key = yield* readKey(room);
    room -= key.length;
    keys.push(key);
  }
  return keys;
}
