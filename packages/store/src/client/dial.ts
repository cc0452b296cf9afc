// Connects to a store server: retries with exponential backoff and jitter until a deadline, proves the
// secret, and checks that the other end is a store.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  notAStore,
  notConnected,
  StoreError,
  type StoreErrorCode,
  secretUnknown,
  stillBusy,
} from '../errors.ts';
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
// A proxy hangs up for a while if its target is still starting. A server of another protocol hangs up every
// time.
const hangUpsUntilRefusal = 8;

/**
 * Resolves with a connection. Rejects with ERR_STORE_CONNECT or ERR_STORE_BUSY at the deadline, and
 * immediately with ERR_STORE_AUTH, ERR_STORE_PROTOCOL, or the signal's reason.
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
  let hangUps = 0;
  let last: unknown = 'no answer';
  let busy: StoreError | undefined;
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return await attemptOnce(address, where, signal);
      } catch (error) {
        for (const each of signals) each?.throwIfAborted();
        if (deadline.signal.aborted) {
          throw busy
            ? stillBusy(where, timeoutMs, attempt, busy)
            : notConnected(where, timeoutMs, attempt, last);
        }
        if (isFinal(error)) throw error;
        last = error;
        if (isCode(error, 'ERR_STORE_BUSY')) busy = error;
        // The connection was established and then closed by the other side. A busy server may close it
        // without a reply.
        if (isCode(error, 'ERR_STORE_LOST') && !busy && ++hangUps === hangUpsUntilRefusal) {
          throw address.secret === undefined ? notAStore(where, error) : secretUnknown(where, error);
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

export function whereIs(address: { readonly host: string; readonly port: number }): string {
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return `tcp ${host}:${address.port}`;
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

function isFinal(error: unknown): boolean {
  return StoreError.isInstance(error) && !isCode(error, 'ERR_STORE_LOST') && !isCode(error, 'ERR_STORE_BUSY');
}

function isCode(error: unknown, code: StoreErrorCode): error is StoreError {
  return StoreError.isInstance(error) && error.code === code;
}
