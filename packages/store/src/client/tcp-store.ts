// Client of a store server, ringwise's or torch's (2.4 and newer). Calls that do not wait share one pipelined
// connection. A call that has to wait gets a connection of its own, because replies come in order and it would hold
// up everything behind it.

import { checkHost, checkNames, checkPort, checkTimeout } from '../check-options.ts';
import { closed, missingKeys, unanswered } from '../errors.ts';
import { expired, limited } from '../server/deadline.ts';
import type { Operation } from '../server/operations.ts';
import * as operation from '../server/operations.ts';
import { checkSecret, type Secret } from '../wire/authentication.ts';
import { pingRequest } from '../wire/wire.ts';
import type { Connection } from './connection.ts';
import { type Address, dial, whereIs } from './dial.ts';
import { defaultTimeoutMs, StoreClient, type Wait } from './store-client.ts';

export interface TcpStoreOptions {
  readonly host: string;
  readonly port: number;
  /** Deadline of connecting, and default deadline of later calls. Default: 300,000 ms. */
  readonly timeoutMs?: number;
  /** Needed exactly when the server has one. */
  readonly secret?: Secret;
  /** Ends connecting early; connect() rejects with its reason. */
  readonly signal?: AbortSignal;
}

const optionNames = ['host', 'port', 'timeoutMs', 'secret', 'signal'];
// Waits beyond this many at once poll, so that a client cannot exhaust the server's file descriptors.
const maxWaitConnections = 8;
const pollMs = 20;
// At a deadline the server gets this long to tell which keys are missing.
const lastQuestionMs = 1_000;

export class TcpStore extends StoreClient {
  readonly #address: Address;
  readonly #where: string;
  readonly #main: Connection;
  #idle: Connection[] = []; // connections for waits, none pending
  #waitConnections = 0; // idle, in use, or being opened

  private constructor(address: Address, main: Connection, timeoutMs: number) {
    super(timeoutMs);
    this.#address = address;
    this.#where = whereIs(address);
    this.#main = main;
  }

  /** Connects, retrying until the deadline: the server may start later than its clients. */
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
    // torch's server counts its clients here, and its wait_for_workers looks at the count.
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

  /** If a key is deleted between the wait and `then`, its value reads as no bytes. */
  protected async whenPresent<T>(wait: Wait, then: Operation<T>): Promise<T> {
    const endMs = performance.now() + wait.timeoutMs;
    const patienceMs = Math.max(wait.timeoutMs, lastQuestionMs);
    if (!(await this.#ask(wait.verb, operation.check(wait.keys), patienceMs, wait))) {
      await this.#arrival(wait, endMs);
    }
    return await this.#ask(wait.verb, then, patienceMs, wait);
  }

  async close(): Promise<void> {
    this.#main.end(closed(this.#where));
  }

  async #ask<T>(verb: string, { frame, reply, isSilent }: Operation<T>, timeoutMs: number, wait?: Wait) {
    const bytes = isSilent ? Buffer.concat([frame(), pingRequest]) : frame();
    const result = await limited(this.#main.request(bytes, reply()), timeoutMs, [wait?.signal]);
    if (result === expired) throw unanswered(verb, this.#where, timeoutMs, wait?.names);
    return result;
  }

  async #arrival(wait: Wait, endMs: number): Promise<void> {
    const signals = [wait.signal, this.#main.ended];
    const connection = await this.#takeConnection(endMs, signals);
    if (!connection) return await this.#poll(wait, endMs);
    const arrival = connection.wait(wait.keys);
    try {
      if ((await limited(arrival.done, leftMs(endMs), signals)) === expired) await this.#throwIfMissing(wait);
    } finally {
      arrival.cancel();
      // Usable again when the server has confirmed; if the connection ended instead, it is counted out elsewhere.
      arrival.done.then(
        () => this.#idle.push(connection),
        () => {},
      );
    }
  }

  /** A connection without a pending wait, or undefined when there are too many already. */
  async #takeConnection(
    endMs: number,
    signals: (AbortSignal | undefined)[],
  ): Promise<Connection | undefined> {
    const idle = this.#idle.pop();
    if (idle) return idle;
    if (this.#waitConnections >= maxWaitConnections) return undefined;
    this.#waitConnections++;
    try {
      const connection = await dial(this.#address, Math.max(leftMs(endMs), lastQuestionMs), signals);
      this.#main.whenEnded(() => connection.end(this.#main.ended.reason));
      connection.whenEnded(() => {
        this.#waitConnections--;
        this.#idle = this.#idle.filter((each) => each !== connection);
      });
      return connection;
    } catch (error) {
      this.#waitConnections--;
      throw error;
    }
  }

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

/** A StoreServer may be spread into the options: its close() is no mistake. */
function withoutClose(options: unknown): unknown {
  if (typeof options !== 'object' || options === null) return options ?? null;
  const { close: _close, ...named } = options as { readonly close?: unknown };
  return named;
}

function leftMs(endMs: number): number {
  return Math.max(0, endMs - performance.now());
}
