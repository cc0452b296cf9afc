// Client of a store server, ringwise's or torch's (2.4 and newer). Calls share one pipelined connection. A call that
// has to wait for keys gets another connection meanwhile: replies come in order, so it would block all later calls.

import { checkHost, checkNames, checkPort, checkTimeout } from '../check-options.ts';
import { closed, missingKeys, notOpened, StoreError, unanswered } from '../errors.ts';
import { expired, limited } from '../server/deadline.ts';
import type { Operation } from '../server/operations.ts';
import * as operation from '../server/operations.ts';
import { checkSecret, type Secret } from '../wire/authentication.ts';
import { pingRequest } from '../wire/wire.ts';
import { Connection } from './connection.ts';
import { type Address, dial, whereIs } from './dial.ts';
import { defaultTimeoutMs, StoreClient, type Wait } from './store-client.ts';

/** Options of TcpStore.connect(). */
export interface TcpStoreOptions {
  /** Name or address of the server. */
  readonly host: string;
  /** Port of the server. */
  readonly port: number;
  /** Deadline of connecting and default deadline of later calls, in milliseconds. Default: 300,000. */
  readonly timeoutMs?: number;
  /** Secret of the job. Required if and only if the server has one. */
  readonly secret?: Secret;
  /** Aborts connecting; connect() rejects with its reason. */
  readonly signal?: AbortSignal;
}

const optionNames = ['host', 'port', 'timeoutMs', 'secret', 'signal'];
// Number of waits that get a connection. Others poll, so that a client cannot exhaust the server's file descriptors.
const maxWaitConnections = 8;
const pollMs = 20;
// Minimum time in milliseconds that the server has for a reply when a deadline is near or over.
const lastQuestionMs = 1_000;

/** A client of a store that serveStore(), a launcher or PyTorch serves. */
export class TcpStore extends StoreClient {
  readonly #address: Address;
  readonly #where: string;
  readonly #main: Connection;
  #idle: Connection[] = []; // connections for waits, none pending
  #waitConnections = 0; // idle, in use, or being opened

  private constructor(address: Address, main: Connection, timeoutMs: number) {
    super(timeoutMs);
    if (!(main instanceof Connection)) throw notOpened('TcpStore', 'connect({ host, port })');
    this.#address = address;
    this.#where = whereIs(address);
    this.#main = main;
  }

  /**
   * Connects to the server, with retries until the deadline, because the server may start later than its clients.
   * Rejects with ERR_STORE_CONNECT or ERR_STORE_BUSY at the deadline, with ERR_STORE_AUTH if the secrets differ, and
   * with ERR_STORE_PROTOCOL if the server is no store.
   */
  static async connect(options: TcpStoreOptions): Promise<TcpStore> {
    checkNames('connect', withoutClose(options), optionNames);
    const { host, port, secret, signal } = options;
    const timeoutMs = checkTimeout('connect', options.timeoutMs ?? defaultTimeoutMs);
    checkHost('connect', host);
    checkPort('connect', port, 1);
    checkSecret('connect', secret);
    const address = { host, port, secret };
    const main = await dial(address, timeoutMs, [signal]);
    const store = new TcpStore(address, main, timeoutMs);
    // torch's clients count themselves in this key. A torch process that hosts the store may wait for that number
    // (wait_for_workers).
    try {
      await store.send('connect', operation.add('init/', 1n));
    } catch (error) {
      main.end(error as Error);
      throw error;
    }
    return store;
  }

  protected async send<T>(verb: string, operation: Operation<T>): Promise<T> {
    return await this.#ask(verb, operation, this.timeoutMs);
  }

  /** Waits until the keys exist, then executes `then`. A key that is deleted in between reads as no bytes. */
  protected async whenPresent<T>(wait: Wait, then: Operation<T>): Promise<T> {
    const endMs = performance.now() + wait.timeoutMs;
    const patienceMs = () => Math.max(Math.round(leftMs(endMs)), lastQuestionMs);
    if (!(await this.#ask(wait.verb, operation.check(wait.keys), patienceMs(), wait))) {
      await this.#arrival(wait, endMs);
    }
    return await this.#ask(wait.verb, then, patienceMs(), wait);
  }

  async close(): Promise<void> {
    this.#main.end(closed(this.#where));
  }

  /** Sends an operation and resolves with its result. Rejects if the server does not answer within `timeoutMs`. */
  async #ask<T>(verb: string, { frame, reply, isSilent }: Operation<T>, timeoutMs: number, wait?: Wait) {
    const bytes = isSilent ? Buffer.concat([frame(), pingRequest]) : frame();
    const result = await limited(this.#main.request(bytes, reply(), verb), timeoutMs, [wait?.signal]);
    if (result === expired) throw unanswered(verb, this.#where, timeoutMs, wait?.names);
    return result;
  }

  /** Resolves when the keys exist. Rejects with ERR_STORE_TIMEOUT, naming the missing keys, at `endMs`. */
  async #arrival(wait: Wait, endMs: number): Promise<void> {
    const signals = [wait.signal, this.#main.ended];
    const connection = await this.#takeConnection(wait, endMs, signals);
    if (!connection) return await this.#poll(wait, endMs);
    const arrival = connection.wait(wait.keys);
    try {
      if ((await limited(arrival.done, leftMs(endMs), signals)) === expired) await this.#throwIfMissing(wait);
    } finally {
      arrival.cancel();
      // The connection is free again when the server has answered the wait or its cancellation. A connection that has
      // ended is removed by the listener of #takeConnection().
      arrival.done.then(
        () => this.#idle.push(connection),
        () => {},
      );
    }
  }

  /** Returns a connection without a pending wait, or undefined if there are too many. */
  async #takeConnection(
    wait: Wait,
    endMs: number,
    signals: (AbortSignal | undefined)[],
  ): Promise<Connection | undefined> {
    const idle = this.#idle.pop();
    if (idle) return idle;
    if (this.#waitConnections >= maxWaitConnections) return undefined;
    this.#waitConnections++;
    const patienceMs = Math.max(Math.round(leftMs(endMs)), lastQuestionMs);
    try {
      const connection = await dial(this.#address, patienceMs, signals);
      this.#main.whenEnded(() => connection.end(this.#main.ended.reason));
      connection.whenEnded(() => {
        this.#waitConnections--;
        this.#idle = this.#idle.filter((each) => each !== connection);
      });
      return connection;
    } catch (error) {
      this.#waitConnections--;
      // The client is connected: for its caller, the server has left a call without an answer.
      if (StoreError.isInstance(error) && error.code === 'ERR_STORE_CONNECT')
        throw unanswered(wait.verb, this.#where, patienceMs, wait.names, error);
      throw error;
    }
  }

  /** Does the same as #arrival() without a connection of its own. */
  async #poll(wait: Wait, endMs: number): Promise<void> {
    const never = new Promise(() => {});
    while (leftMs(endMs) > 0) {
      await limited(never, Math.min(pollMs, leftMs(endMs)), [wait.signal, this.#main.ended]);
      if (await this.#ask(wait.verb, operation.check(wait.keys), lastQuestionMs, wait)) return;
    }
    await this.#throwIfMissing(wait);
  }

  async #throwIfMissing(wait: Wait): Promise<void> {
    const isThere = await Promise.all(
      wait.keys.map((key) => this.#ask(wait.verb, operation.check([key]), lastQuestionMs, wait)),
    );
    const missing = wait.names.filter((_, index) => !isThere[index]);
    if (missing.length === 0) return;
    throw missingKeys(wait.verb, this.#where, wait.timeoutMs, missing, wait.names.length);
  }
}

/** Removes `close`, so that a StoreServer may be spread into the options. */
function withoutClose(options: unknown): unknown {
  if (typeof options !== 'object' || options === null) return options ?? null;
  const { close: _close, ...named } = options as { readonly close?: unknown };
  return named;
}

function leftMs(endMs: number): number {
  return Math.max(0, endMs - performance.now());
}
