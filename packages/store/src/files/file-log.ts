// A log in a directory. Several processes, also on several hosts, append to it without locks. Record n is the file n.
// A process writes it under a temporary name and publishes it with link(), which succeeds for exactly one process and
// exposes only complete files. A process that dies in between leaves a temporary file, which does not affect the
// others.

import { randomUUID } from 'node:crypto';
import { access, link, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { directoryGone, fileFailed, staleDirectory } from '../errors.ts';
import { makeFolderAsync } from './make-folder.ts';

const format = 'ringwise-store-1';

interface Header {
  readonly format: string;
  readonly runId: string;
  readonly createdAt: string;
}

export class FileLog {
  readonly #directory: string;
  readonly #header: string;
  #next = 1;

  private constructor(directory: string) {
    this.#directory = directory;
    this.#header = join(directory, 'header.json');
  }

  /** Creates the directory or joins it. Rejects with ERR_STORE_STALE if it belongs to another run. */
  static async open(directory: string, runId: string | undefined): Promise<FileLog> {
    const log = new FileLog(directory);
    const ours: Header = { format, runId: runId ?? '', createdAt: new Date().toISOString() };
    try {
      await makeFolderAsync(directory, 0o700);
    } catch (error) {
      throw fileFailed(directory, error);
    }
    await log.#publish(JSON.stringify(ours), (temporary) => log.#claim(temporary, log.#header));
    const found = await log.#readHeader();
    if (found.format !== format || (runId !== undefined && found.runId !== runId)) {
      throw staleDirectory(directory, ours, found);
    }
    return log;
  }

  /** Resolves with the next record, or undefined if there is none yet. */
  async read(): Promise<Buffer | undefined> {
    try {
      const record = await readFile(this.#record);
      this.#next++;
      return record;
    } catch (error) {
      if (!isCode(error, 'ENOENT')) throw fileFailed(this.#directory, error);
    }
    await access(this.#header).catch((error) => {
      throw directoryGone(this.#directory, error);
    });
    return undefined;
  }

  /**
   * Appends a record. Before each attempt it calls `catchUp`, which must read all records that others have appended.
   * The record counts as read.
   */
  async append(record: Buffer, catchUp: () => Promise<void>): Promise<void> {
    await this.#publish(record, async (temporary) => {
      do await catchUp();
      while (!(await this.#claim(temporary, this.#record)));
      this.#next++;
    });
  }

  /** Path of the next record. */
  get #record(): string {
    return join(this.#directory, String(this.#next).padStart(9, '0'));
  }

  /** Resolves with the header, whose members are undefined if another program has written the file. */
  async #readHeader(): Promise<Partial<Header>> {
    try {
      return Object(JSON.parse(await readFile(this.#header, 'utf8')));
    } catch (error) {
      throw fileFailed(this.#directory, error);
    }
  }

  /** Writes a temporary file and calls `publish`, which gives it its final name. Then removes the temporary name. */
  async #publish(content: Buffer | string, publish: (temporary: string) => Promise<unknown>): Promise<void> {
    const temporary = join(this.#directory, `${randomUUID()}.tmp`);
    try {
      await writeFile(temporary, content, { flag: 'wx' }).catch((error) => {
        throw isCode(error, 'ENOENT')
          ? directoryGone(this.#directory, error)
          : fileFailed(this.#directory, error);
      });
      await publish(temporary);
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** Gives the temporary file the name `path`. Returns false if another process was first. */
  async #claim(temporary: string, path: string): Promise<boolean> {
    try {
      await link(temporary, path);
      return true;
    } catch (error) {
      // If a file server's reply to a successful link() is lost, the system repeats the link(), which may fail with
      // EEXIST. The file then has two names.
      if (isCode(error, 'EEXIST')) return (await stat(temporary)).nlink > 1;
      throw fileFailed(this.#directory, error);
    }
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
