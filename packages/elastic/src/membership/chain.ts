// Reads and writes the documents of a job in the store: views, reports and wishes as JSON. Every call has a deadline;
// if the store does not answer by then, the member reports an error of the store.
import { setTimeout as sleep } from 'node:timers/promises';
import { memberKeys } from '@ringwise/collectives';
import { getIfPresent, type Store, StoreError } from '@ringwise/store';
import { storeFailed } from './errors.ts';
import {
  asksKey,
  endedKey,
  groupPrefix,
  headKey,
  openedKey,
  reportsKey,
  trainingKey,
  viewKey,
  wishCountKey,
  wishKey,
} from './keys.ts';
import type { Action, Reading } from './protocol/machine.ts';
import type { Report, View, Wish } from './protocol/view.ts';

/** Interval in milliseconds at which a watch checks whether it has missed a view that was deleted. */
const sliceMs = 1_000;
/** Interval in milliseconds at which a member checks for wishes to join. */
const wishPollMs = 100;

export type ReadRequest = Omit<Extract<Action, { kind: 'read' }>, 'kind'>;

/** Access to the documents. */
export interface Documents {
  /** Store with the keys of this job only; replaced by another store after a move. */
  readonly job: Store;
  /** Milliseconds that the store has to answer. */
  readonly answerMs: number;
}

export class Chain {
  readonly #documents: Documents;

  constructor(documents: Documents) {
    this.#documents = documents;
  }

  get #store(): Store {
    return this.#documents.job;
  }

  /** Writes a wish to join. Returns its number. */
  async wish(wish: Wish): Promise<number> {
    const number = await this.#answer(this.#store.add(wishCountKey, 1));
    await this.#answer(this.#store.set(wishKey(number), JSON.stringify(wish)));
    return number;
  }

  /** Returns a view that exists, at most a few views old; null if there is none. */
  async head(): Promise<View | null> {
    const number = await this.#headNumber();
    if (number === null) return await this.#view(0);
    return (await this.#view(number)) ?? (await this.#view(number + 1));
  }

  /** Writes the description of the training, unless another member has written it. */
  async describe(training: string): Promise<void> {
    await this.#answer(this.#store.compareSet(trainingKey, '', training));
  }

  /** Returns the description of the training; null before a member has written it. */
  async training(): Promise<string | null> {
    const bytes = await this.#value(trainingKey);
    return bytes === null ? null : Buffer.from(bytes).toString();
  }

  async report(report: Report): Promise<void> {
    await this.#answer(this.#store.append(reportsKey(report.view), `${JSON.stringify(report)}\n`));
  }

  /** Writes `view`, unless the store already has a view of that number. Returns the view in the store. */
  async propose(view: View): Promise<View> {
    const stored = await this.#answer(this.#store.compareSet(viewKey(view.number), '', JSON.stringify(view)));
    return parse(stored) as View;
  }

  /**
   * Copies a view of an earlier store into this one, unless this one already has a view of that number. Returns the
   * view in this store. Wishes are numbered from the last one that the view has read.
   */
  async open(view: View): Promise<View> {
    const count = await this.#answer(this.#store.add(wishCountKey, 0));
    if (count < view.wishes) await this.#answer(this.#store.add(wishCountKey, view.wishes - count));
    const stored = await this.propose(view);
    await this.#answer(this.#store.compareSet(headKey, '', String(view.number)));
    // This key is written last, because launchers read the other keys when it exists.
    await this.#answer(this.#store.compareSet(openedKey, '', String(stored.epoch)));
    return stored;
  }

  /** Reads the documents that a decision needs. Does not wait for absent keys. */
  async read({ view, wishes, unread, ids }: ReadRequest): Promise<Reading> {
    const [reports, news, ended] = await Promise.all([
      this.#reports(view),
      this.#wishesAfter(wishes),
      this.#present(ids.map(endedKey)),
    ]);
    const read = await this.#wishes([...unread, ...news]);
    // Ask about the authors of new wishes, too: a process may have died soon after it had written its wish.
    const known = new Set(ids);
    const unasked = read.flatMap(({ wish }) => (wish === null || known.has(wish.id) ? [] : [wish.id]));
    const endedToo = await this.#present(unasked.map(endedKey));
    const all = [...ids.filter((_, index) => ended[index]), ...unasked.filter((_, index) => endedToo[index])];
    return { view, reports, wishes: read, ended: new Set(all) };
  }

  /** Waits for a view after `number` and returns it: the next one, or a later one if the next has been deleted. */
  async next(number: number, signal: AbortSignal): Promise<View> {
    for (;;) {
      if (await this.#appears(viewKey(number + 1), sliceMs, signal)) {
        const view = await this.#view(number + 1);
        if (view !== null) return view;
      }
      const head = await this.#headNumber();
      if (head !== null && head > number + 1) {
        const view = await this.#view(head);
        if (view !== null) return view;
        await sleep(20, undefined, { signal });
      }
      signal.throwIfAborted();
    }
  }

  /** Waits until a member has reported that view `number` has ended. */
  async over(number: number, signal: AbortSignal): Promise<void> {
    while (!(await this.#appears(reportsKey(number), sliceMs * 10, signal))) signal.throwIfAborted();
  }

  /**
   * Waits until there is a wish after number `wishes`, or one of the `unread` ones. A process that dies before it has
   * written its wish leaves a number without a text, so this reads all later numbers. It polls, because a blocking call
   * to the store would keep the process alive after the program has ended without close().
   */
  async wished({ wishes, unread }: Pick<View, 'wishes' | 'unread'>, signal: AbortSignal): Promise<void> {
    for (;;) {
      const numbers = [...unread, ...(await this.#wishesAfter(wishes))];
      if ((await this.#present(numbers.map(wishKey))).includes(true)) return;
      await sleep(wishPollMs, undefined, { signal, ref: false });
    }
  }

  /** Writes a request of a learner to a member, which reads it by asks(). */
  async ask(memberId: string, what: unknown): Promise<void> {
    await this.#answer(this.#store.append(asksKey(memberId), `${JSON.stringify(what)}\n`));
  }

  /** Returns the requests of learners to `memberId` since the last call, in order. Only that member calls it. */
  async asks(memberId: string): Promise<unknown[]> {
    const key = asksKey(memberId);
    const bytes = await this.#value(key);
    if (bytes === null || bytes.length === 0) return [];
    const text = Buffer.from(bytes).toString();
    // If lines were appended meanwhile, the value differs and stays as it is; the next call reads it.
    const left = await this.#answer(this.#store.compareSet(key, text, ''));
    if (left.length > 0) return [];
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as unknown);
  }

  /** Tells whether members have reported that a view has ended for them. */
  async hasReports(view: number): Promise<boolean> {
    return (await this.#present([reportsKey(view)]))[0]!;
  }

  /** Returns the subset of `ids` whose launcher has reported that their process has ended. */
  async ended(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const present = await this.#present(ids.map(endedKey));
    return new Set(ids.filter((_, index) => present[index]));
  }

  /**
   * Makes `view` the head, and deletes documents that are no longer needed: those of older views, keys that their
   * groups have left, and the wishes that the views after `before` have read.
   */
  async announce(view: View, before: View | null): Promise<void> {
    const head = await this.#headNumber();
    if (head !== null && head >= view.number) return;
    const text = head === null ? '' : String(head);
    await this.#answer(this.#store.compareSet(headKey, text, String(view.number)));
    const old = view.number - 3;
    const ofGroup = memberKeys.map((key) => `${groupPrefix(old)}/${key}`);
    const documents = old < 0 ? [] : [viewKey(old), reportsKey(old), ...ofGroup];
    const read = before === null ? [] : wishesBetween(before, view);
    await Promise.all(
      [...documents, ...read.map(wishKey)].map((key) => this.#answer(this.#store.delete(key))),
    );
  }

  async #headNumber(): Promise<number | null> {
    const bytes = await this.#value(headKey);
    return bytes === null ? null : Number(Buffer.from(bytes).toString());
  }

  async #view(number: number): Promise<View | null> {
    const bytes = await this.#value(viewKey(number));
    return bytes === null ? null : (parse(bytes) as View);
  }

  async #reports(view: number): Promise<Report[]> {
    const bytes = view < 0 ? null : await this.#value(reportsKey(view));
    if (bytes === null) return [];
    const lines = Buffer.from(bytes).toString().split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Report);
  }

  /** Returns the numbers of the wishes after number `wishes`, including numbers without a text. */
  async #wishesAfter(wishes: number): Promise<number[]> {
    const count = await this.#answer(this.#store.add(wishCountKey, 0));
    return Array.from({ length: Math.max(0, count - wishes) }, (_, index) => wishes + 1 + index);
  }

  /** Reads wishes without waiting for them, because another member deletes those that its view has read. */
  async #wishes(numbers: readonly number[]): Promise<Reading['wishes']> {
    const values = await Promise.all(numbers.map((number) => this.#value(wishKey(number))));
    return numbers.map((number, index) => {
      const bytes = values[index]!;
      return { number, wish: bytes === null || bytes.length === 0 ? null : (parse(bytes) as Wish) };
    });
  }

  async #present(keys: readonly string[]): Promise<boolean[]> {
    return await Promise.all(keys.map((key) => this.#answer(this.#store.check([key]))));
  }

  async #value(key: string): Promise<Uint8Array | null> {
    return await this.#answer(getIfPresent(this.#store, key));
  }

  async #appears(key: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#store.wait([key], { timeoutMs, signal });
      return true;
    } catch (error) {
      signal.throwIfAborted();
      // The wait has a connection of its own, which a busy store may refuse. The caller's next request shows whether
      // the store still answers.
      if (isTimeout(error) || isBusy(error)) return false;
      throw failed(error);
    }
  }

  /** Rejects if the store does not answer in time. */
  async #answer<T>(call: Promise<T>): Promise<T> {
    const { answerMs } = this.#documents;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const error = () => storeFailed('change', `no answer within ${answerMs} ms`, undefined);
      timer = setTimeout(() => reject(error()), answerMs);
    });
    try {
      return await Promise.race([call, late]);
    } catch (error) {
      throw isTimeout(error) ? error : failed(error);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Returns the numbers of the wishes that `view` has read and `before` has not. */
function wishesBetween(before: View, view: View): number[] {
  const news = Array.from({ length: view.wishes - before.wishes }, (_, index) => before.wishes + 1 + index);
  return [...before.unread, ...news].filter((number) => !view.unread.includes(number));
}

function parse(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes).toString());
}

function isTimeout(error: unknown): boolean {
  return StoreError.isInstance(error) && error.code === 'ERR_STORE_TIMEOUT';
}

function isBusy(error: unknown): boolean {
  return StoreError.isInstance(error) && error.code === 'ERR_STORE_BUSY';
}

function failed(error: unknown): unknown {
  return StoreError.isInstance(error) ? storeFailed('change', error.message, error) : error;
}
