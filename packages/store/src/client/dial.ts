// Connects to a store server: retries with exponential backoff and jitter until a deadline, proves the
// secret, and checks that the other end is a store.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  noLoopback,
  notAStore,
  notConnected,
  StoreError,
  type StoreErrorCode,
  secretUnknown,
  stillBusy,
} from '../errors.ts';
import { isLoopback } from '../loopback.ts';
import { timerMs } from '../server/deadline.ts';
import { anyOf } from '../server/signals.ts';
import { introduce, readFirstEcho, type Secret } from '../wire/authentication.ts';
import { pingRequest, typeByte, validateMagic } from '../wire/wire.ts';
import { Connection } from './connection.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly secret: Secret | undefined;
}

const firstPauseMs = 20;
const longestPauseMs = 1_000;
// A proxy accepts connections and closes them while its target is still starting. A server of another protocol, or a
// store without a secret when this client has one, closes every connection. dial() assumes the second case after 8
// closes, but not before 20 s have passed or the deadline is reached: within 20 s the store's process starts, even on a
// busy machine.
const closesUntilRefusal = 8;
const minMsUntilRefusal = 20_000;

/**
 * Resolves with a connection. Rejects with a signal's reason when it is aborted. Rejects at once with ERR_STORE_AUTH if
 * the secrets differ or one side has none, with ERR_STORE_PROTOCOL if the reply is malformed, and with
 * ERR_STORE_CONNECT if no interface leads to a loopback address. If the server has closed 8 connections and was never
 * busy, rejects with one of the first two codes at the next close after 20 s, or at the deadline. Otherwise rejects at
 * the deadline with ERR_STORE_BUSY or ERR_STORE_CONNECT.
 */
export async function dial(
  address: Address,
  timeoutMs: number,
  signals: readonly (AbortSignal | undefined)[],
): Promise<Connection> {
  const where = whereIs(address);
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), timerMs(timeoutMs));
  const { signal, release } = anyOf([deadline.signal, ...signals]);
  const beganMs = performance.now();
  let closes = 0;
  let last: unknown = 'no answer';
  let busy: StoreError | undefined;
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return await attemptOnce(address, where, signal);
      } catch (error) {
        for (const each of signals) each?.throwIfAborted();
        if (deadline.signal.aborted) {
          if (busy) throw stillBusy(where, timeoutMs, attempt, busy);
          throw closes >= closesUntilRefusal
            ? hungUp(address, where, last)
            : notConnected(where, timeoutMs, attempt, last);
        }
        if (isFinal(error)) throw error;
        if (isLoopbackDown(error)) throw noLoopback(where, error);
        last = error;
        if (isCode(error, 'ERR_STORE_BUSY')) busy = error;
        // The connection was established and then closed by the other side. A busy server may close it
        // without a reply.
        if (isCode(error, 'ERR_STORE_LOST') && !busy && ++closes >= closesUntilRefusal) {
          if (performance.now() - beganMs >= minMsUntilRefusal) throw hungUp(address, where, error);
        }
        const pauseMs = Math.min(firstPauseMs * 2 ** (attempt - 1), longestPauseMs);
        await sleep(pauseMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {});
      }
    }
  } finally {
    clearTimeout(timer);
    release();
  }
}

/** Returns an address in the form that error messages use. */
export function whereIs(address: { readonly host: string; readonly port: number }): string {
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return `tcp ${host}:${address.port}`;
}

/** Makes the error for a server that closes every connection. */
function hungUp({ secret }: Address, where: string, last: unknown): StoreError {
  return secret === undefined ? notAStore(where, last) : secretUnknown(where, last);
}

async function attemptOnce(address: Address, where: string, signal: AbortSignal): Promise<Connection> {
  const connection = await Connection.open(address.host, address.port, where, signal);
  const abort = () => connection.end(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    signal.throwIfAborted();
    if (address.secret !== undefined) {
      await introduce(address.secret, where, (bytes, reply) => connection.request(bytes, reply));
    }
    const validation = Buffer.concat([typeByte('validate'), validateMagic, pingRequest]);
    await connection.request(validation, readFirstEcho(where));
    return connection;
  } catch (error) {
    connection.end(error as Error);
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Returns whether another attempt would fail in the same way. */
function isFinal(error: unknown): boolean {
  return StoreError.isInstance(error) && !isCode(error, 'ERR_STORE_LOST') && !isCode(error, 'ERR_STORE_BUSY');
}

/** Returns whether no interface leads to a loopback address: unlike a network, it does not come up later by itself. */
function isLoopbackDown(error: unknown): boolean {
  const {
    code,
    address,
    errors = [error],
  } = error as NodeJS.ErrnoException & { address?: string; errors?: unknown[] };
  if (errors[0] !== error) return errors.every(isLoopbackDown);
  return (code === 'ENETUNREACH' || code === 'EADDRNOTAVAIL') && address !== undefined && isLoopback(address);
}

function isCode(error: unknown, code: StoreErrorCode): error is StoreError {
  return StoreError.isInstance(error) && error.code === code;
}
