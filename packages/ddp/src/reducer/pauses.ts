// The calls of noSync() that run. While there is one, gradients accumulate on this rank only.
import { noSyncNotAwaited } from '../errors.ts';

export class Pauses {
  readonly #calls = new Set<{ readonly isAwaited: boolean }>();

  /** Runs `fn`. If its result is a promise, the call lasts until that settles. */
  during<T>(fn: () => T): T {
    const call = { isAwaited: true };
    this.#calls.add(call);
    const end = () => void this.#calls.delete(call); // does nothing after clear()
    let result: T;
    try {
      result = fn();
    } catch (error) {
      end();
      throw error;
    }
    if (typeof (result as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function') {
      call.isAwaited = false;
      const note = () => {
        call.isAwaited = true;
      };
      return whenAwaited(Promise.resolve(result).finally(end), note) as T;
    }
    end();
    return result;
  }

  /** Whether a call runs. */
  get any(): boolean {
    return this.#calls.size > 0;
  }

  /**
   * Throws if a call runs whose promise the program has not awaited: it means to average gradients that only
   * accumulate. `where` and `rank` are for the error.
   */
  checkAwaited(where: string, rank: number): void {
    for (const { isAwaited } of this.#calls) if (!isAwaited) throw noSyncNotAwaited(where, rank);
  }

  /** Ends all calls. */
  clear(): void {
    this.#calls.clear();
  }
}

/**
 * Calls `note` whenever the promise is awaited, chained or combined with others, each of which begins by reading one of
 * these two members. Returns the promise.
 */
function whenAwaited<T>(promise: Promise<T>, note: () => void): Promise<T> {
  const noted = (name: 'constructor' | 'then'): PropertyDescriptor => ({
    get() {
      note();
      return Promise.prototype[name];
    },
    configurable: true,
  });
  const members = (['constructor', 'then'] as const).map((name) => [name, noted(name)] as const);
  return Object.defineProperties(promise, Object.fromEntries(members));
}
