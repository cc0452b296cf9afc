// A store in a directory, for ranks that share only a file system. The directory holds a log of requests in
// the wire format, and every client replays it on its own key space. All clients see the same requests in the
// same order, so they agree on every result. Waiting clients poll for new records.

import { setTimeout as sleep } from 'node:timers/promises';
import { checkNames, checkTimeout } from '../check-options.ts';
import { StoreClient, type Wait } from '../client/store-client.ts';
import { badArgument, fileSystemSilent, malformed, notOpened, StoreError } from '../errors.ts';
import { expired, limited } from '../server/deadline.ts';
import { KeySpace } from '../server/key-space.ts';
import type { Operation } from '../server/operations.ts';
import { SpaceWaits } from '../server/space-waits.ts';
import { ByteQueue, Parser } from '../wire/byte-queue.ts';
import { answer, readRequest } from '../wire/requests.ts';
import { requestKinds } from '../wire/wire.ts';
import { FileLog } from './file-log.ts';

const pollMs = 10;
// Minimum time in milliseconds that the file system has for the first look of a wait, so that a wait with a short
// deadline finds keys that are there.
const firstLookMs = 1_000;

/** Options of FileStore.open(). */
export interface FileStoreOptions {
  /** Default deadline of waiting calls in milliseconds. Default: 300,000. */
  readonly timeoutMs?: number;
  /** A name that all processes of this run share, so that a directory of another run is refused. */
  readonly runId?: string;
}

/** A store in a folder that all ranks see, such as one on a network file system. Needs no server. */
export class FileStore extends StoreClient {
  readonly #log: FileLog;
  readonly #directory: string;
  readonly #space = new KeySpace();
  readonly #waits: SpaceWaits;
  #tail: Promise<unknown> = Promise.resolve(); // settles after the last call; calls use the log one after the other
  #isPolling = false;

  private constructor(log: FileLog, directory: string, timeoutMs: number | undefined) {
    super(timeoutMs);
    if (!(log instanceof FileLog)) throw notOpened('FileStore', 'open(directory)');
    this.#log = log;
    this.#directory = directory;
    this.#waits = new SpaceWaits(this.#space, `file ${directory}`);
  }

  /**
   * Joins the store in `directory`, which is created if absent. The file system must support hard links. The store
   * never removes the directory: remove it after the run. With a `runId`, the directory of another run is refused
   * (ERR_STORE_STALE); without one, its keys are read.
   */
  static async open(directory: string, options: FileStoreOptions = {}): Promise<FileStore> {
    if (typeof directory !== 'string' || directory === '')
      throw badArgument('open', 'directory to be a path', directory);
    checkNames('open', options, ['timeoutMs', 'runId']);
    const { runId, timeoutMs } = options;
    if (runId !== undefined && typeof runId !== 'string')
      throw badArgument('open', 'runId to be a string', runId);
    if (timeoutMs !== undefined) checkTimeout('open', timeoutMs);
    return new FileStore(await FileLog.open(directory, runId), directory, timeoutMs);
  }

  protected async send<T>(verb: string, operation: Operation<T>): Promise<T> {
    const call = this.#inTurn(async () => {
      if (operation.isRead) await this.#catchUp();
      else await this.#log.append(operation.frame(), () => this.#catchUp());
      return operation.run(this.#space);
    });
    const result = await limited(call, this.timeoutMs, []);
    if (result === expired) throw fileSystemSilent(verb, this.#directory, this.timeoutMs);
    return result;
  }

  protected async whenPresent<T>(wait: Wait, then: Operation<T>): Promise<T> {
    const { verb, names, timeoutMs, signal } = wait;
    const endMs = performance.now() + timeoutMs;
    const lookMs = Math.max(timeoutMs, firstLookMs);
    const look = await limited(
      this.#inTurn(() => this.#catchUp()),
      lookMs,
      [signal],
    );
    if (look === expired) throw fileSystemSilent(verb, this.#directory, lookMs, names);
    const result = this.#waits.run(wait, then, Math.max(0, endMs - performance.now()));
    void this.#poll();
    return await result;
  }

  /** Ends the client. Waits for calls under way, at most `timeoutMs`. */
  async close(): Promise<void> {
    this.#waits.end();
    await limited(this.#tail, this.timeoutMs, []);
  }

  /** Runs `call` after all earlier calls. */
  async #inTurn<T>(call: () => Promise<T>): Promise<T> {
    this.#waits.throwIfEnded();
    const result = this.#tail.then(() => {
      this.#waits.throwIfEnded();
      return call();
    });
    this.#tail = result.catch(() => {});
    return await result;
  }

  /** Reads new records as long as waits are pending. */
  async #poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      while (this.#waits.count > 0) {
        await sleep(pollMs);
        await this.#inTurn(() => this.#catchUp());
      }
    } catch (error) {
      this.#waits.end(error as Error);
    }
    this.#isPolling = false;
  }

  /** Replays all records that are not in the key space yet. */
  async #catchUp(): Promise<void> {
    for (let record = await this.#log.read(); record; record = await this.#log.read()) {
      this.#replay(record);
    }
  }

  #replay(record: Buffer): void {
    const queue = new ByteQueue();
    queue.push(record);
    const request = new Parser(readRequest(requestKinds)).advance(queue)?.value;
    if (!request || request.kind === 'wait' || request.kind === 'barrier' || request.kind === 'cancelWait') {
      throw malformed('record', `${record.length} bytes`);
    }
    try {
      answer(this.#space, request);
    } catch (error) {
      // The client that made the request has reported the error. For all others it changed nothing.
      if (!StoreError.isInstance(error)) throw error;
    }
  }
}
