// The server's side of the wire format: parses requests, executes them and encodes replies. readRequest() lists the
// arguments of each request.

import { malformed } from '../errors.ts';
import type { KeySpace } from '../server/key-space.ts';
import type { Reading } from './byte-queue.ts';
import {
  bytesArgument,
  keyArgument,
  maxRequestBytes,
  pingNonce,
  type RequestKind,
  readByte,
  readCount,
  readI64,
  readKey,
  readKeys,
  readValue,
  u64,
  validateMagic,
} from './wire.ts';

/** Requests that the server answers at once from the key space. */
export type ImmediateRequest =
  | { kind: 'set' | 'append' | 'queuePush'; key: string; value: Uint8Array }
  | { kind: 'compareSet'; key: string; expected: Uint8Array; desired: Uint8Array }
  | { kind: 'get' | 'delete' | 'queuePop' | 'queueLength'; key: string }
  | { kind: 'add'; key: string; amount: bigint }
  | { kind: 'check' | 'multiGet'; keys: string[] }
  | { kind: 'multiSet'; entries: [string, Uint8Array][] }
  | { kind: 'numKeys' | 'listKeys' }
  | { kind: 'ping'; nonce: Buffer }
  // These two have no effect: torch 1.13 registers watches on a second connection, and clients may validate again.
  | { kind: 'watchKey'; key: string }
  | { kind: 'validate' };

/** Requests whose answer depends on other connections. */
export type WaitingRequest =
  | { kind: 'wait'; keys: string[] }
  | { kind: 'barrier'; key: string; world: bigint }
  | { kind: 'cancelWait' };

export type Request = ImmediateRequest | WaitingRequest;

/** Parses one request; `kinds` are the names of the type bytes. Throws on an unknown type byte or a bad length. */
export function* readRequest(kinds: readonly RequestKind[]): Reading<Request> {
  const type = yield* readByte();
  const kind = kinds[type];
  switch (kind) {
    case 'set':
    case 'append':
    case 'queuePush':
      return { kind, key: yield* readKey(), value: yield* readValue() };
    case 'compareSet':
      return { kind, key: yield* readKey(), expected: yield* readValue(), desired: yield* readValue() };
    case 'get':
    case 'delete':
    case 'queuePop':
    case 'queueLength':
    case 'watchKey':
      return { kind, key: yield* readKey() };
    case 'add':
      return { kind, key: yield* readKey(), amount: yield* readI64() };
    case 'barrier':
      return { kind, key: yield* readKey(), world: yield* readI64() };
    case 'check':
    case 'wait':
    case 'multiGet':
      return { kind, keys: yield* readKeys() };
    case 'multiSet':
      return { kind, entries: yield* readEntries() };
    case 'numKeys':
    case 'listKeys':
    case 'cancelWait':
      return { kind };
    case 'ping':
      return { kind, nonce: Buffer.from(yield pingNonce.length) };
    case 'validate':
      if (!(yield validateMagic.length).equals(validateMagic))
        throw malformed('validation', 'other magic bytes');
      return { kind };
    default:
      throw malformed('request type', type);
  }
}

function* readEntries(): Reading<[string, Uint8Array][]> {
  const entries: [string, Uint8Array][] = [];
  let room = maxRequestBytes;
  for (let left = yield* readCount(); left > 0; left--) {
    const key = yield* readKey(room);
    room -= key.length;
    const value = yield* readValue(room);
    room -= value.length;
    entries.push([key, value]);
  }
  return entries;
}

/**
 * Executes a request. Returns the reply as pieces to send in order. Throws StoreError if the request fails, because the
 * protocol has no reply for errors.
 */
export function answer(space: KeySpace, request: ImmediateRequest): Uint8Array[] {
  switch (request.kind) {
    case 'set':
      space.set(request.key, request.value);
      return [];
    case 'append':
      space.append(request.key, request.value);
      return [];
    case 'queuePush':
      space.queuePush(request.key, request.value);
      return [];
    case 'multiSet':
      for (const [key, value] of request.entries) space.set(key, value);
      return [];
    case 'compareSet':
      return bytesReply(space.compareSet(request.key, request.expected, request.desired));
    case 'get':
      return bytesReply(space.get(request.key));
    case 'multiGet':
      return request.keys.flatMap((key) => bytesReply(space.get(key)));
    case 'add':
      return [u64(space.add(request.key, request.amount))];
    case 'delete':
      return [u64(space.delete(request.key) ? 1 : 0)];
    case 'numKeys':
      return [u64(space.size)];
    case 'check':
      return [Buffer.of(request.keys.every((key) => space.has(key)) ? 0 : 1)];
    case 'queuePop': {
      const length = space.queueLength(request.key);
      const value = space.queuePop(request.key);
      return value ? [u64(length), bytesArgument(value)] : [u64(0)];
    }
    case 'queueLength':
      return [u64(space.queueLength(request.key))];
    case 'listKeys': {
      const keys = space.keys();
      return [u64(keys.length), ...keys.map(keyArgument)];
    }
    case 'ping':
      return [request.nonce];
    case 'watchKey':
    case 'validate':
      return [];
  }
}

/**
 * Encodes a value. A missing key reads as no bytes, as with torch's current server. Values are sent without a
 * copy.
 */
function bytesReply(value: Uint8Array | undefined): Uint8Array[] {
  return value ? [u64(value.byteLength), value] : [u64(0)];
}
