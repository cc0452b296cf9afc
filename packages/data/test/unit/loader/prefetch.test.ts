import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { DataLoader } from '../../../src/index.ts';

/** A data set whose loads end only when the test ends them. Each batch is one sample. */
class ManualDataset {
  readonly length: number;
  readonly started: number[] = [];
  readonly #pending = new Map<number, PromiseWithResolve>();

  constructor(length: number) {
    this.length = length;
  }

  get(index: number): Promise<number> {
    this.started.push(index);
    return new Promise((resolve, reject) => this.#pending.set(index, { resolve, reject }));
  }

  finish(...indices: number[]): void {
    for (const index of indices) this.#pending.get(index)!.resolve(index);
  }

  fail(index: number, error: Error): void {
    this.#pending.get(index)!.reject(error);
  }
}

interface PromiseWithResolve {
  readonly resolve: (value: number) => void;
  readonly reject: (error: Error) => void;
}

const options = (prefetch: number) => ({ prefetch, collate: ([sample]: number[]) => sample! });

describe('prefetch', () => {
  it('keeps that many loads ahead of the batch asked for, and no more', async () => {
    const dataset = new ManualDataset(10);
    const batches = new DataLoader(dataset, options(2))[Symbol.asyncIterator]();
    const first = batches.next();
    await turn();
    expect(dataset.started).toEqual([0, 1, 2]);
    dataset.finish(0, 1, 2);
    expect((await first).value).toBe(0);
    await turn();
    expect(dataset.started).toEqual([0, 1, 2]); // the loop has not asked for more
    expect((await batches.next()).value).toBe(1);
    expect(dataset.started).toEqual([0, 1, 2, 3]);
    dataset.finish(3);
    await batches.return();
  });

  it('loads on demand only with 0', async () => {
    const dataset = new ManualDataset(3);
    const batches = new DataLoader(dataset, options(0))[Symbol.asyncIterator]();
    for (const index of [0, 1, 2]) {
      const next = batches.next();
      await turn();
      expect(dataset.started).toHaveLength(index + 1);
      dataset.finish(index);
      expect((await next).value).toBe(index);
    }
    expect((await batches.next()).done).toBe(true);
  });

  it('keeps the order when later loads finish first', async () => {
    const dataset = new ManualDataset(3);
    const batches = new DataLoader(dataset, options(2))[Symbol.asyncIterator]();
    const first = batches.next();
    await turn();
    dataset.finish(2, 1);
    await turn();
    dataset.finish(0);
    expect([(await first).value, (await batches.next()).value, (await batches.next()).value]).toEqual([
      0, 1, 2,
    ]);
    expect((await batches.next()).done).toBe(true);
  });

  it('brings an error at its batch, as it was thrown, and ends there', async () => {
    const dataset = new ManualDataset(5);
    const batches = new DataLoader(dataset, options(2))[Symbol.asyncIterator]();
    const first = batches.next();
    await turn();
    const error = new Error('sample 1 is damaged');
    dataset.fail(1, error);
    dataset.finish(0, 2);
    expect((await first).value).toBe(0);
    const second = batches.next();
    await turn();
    dataset.finish(3);
    await expect(second).rejects.toBe(error);
    expect(await batches.next()).toEqual({ done: true, value: undefined });
    expect(dataset.started).toEqual([0, 1, 2, 3]);
  });

  it('brings an error that get throws at once only in its turn, with its stack', async () => {
    const damaged = (index: number) => {
      if (index === 2) throw new RangeError('sample 2 is damaged');
      return Promise.resolve(index);
    };
    const seen: number[] = [];
    const failure = await (async () => {
      for await (const batch of new DataLoader({ length: 5, get: damaged }, options(4))) seen.push(batch);
    })().catch((error: unknown) => error);
    expect(seen).toEqual([0, 1]);
    expect(failure).toBeInstanceOf(RangeError);
    expect((failure as Error).stack).toContain('damaged [as get]');
  });

  it('waits for the loads under way when the loop is left, and starts no more', async () => {
    const dataset = new ManualDataset(10);
    const batches = new DataLoader(dataset, options(3))[Symbol.asyncIterator]();
    const first = batches.next();
    await turn();
    dataset.finish(0);
    await first;
    let isLeft = false;
    const leaving = batches.return().then(() => {
      isLeft = true;
    });
    await turn();
    expect(isLeft).toBe(false);
    dataset.finish(1, 2);
    dataset.fail(3, new Error('nobody reads this batch any more'));
    await leaving;
    expect(dataset.started).toEqual([0, 1, 2, 3]);
  });

  it('ends with an error only when the other samples of the batch are there too', async () => {
    const dataset = new ManualDataset(3);
    const loader = new DataLoader(dataset, { batchSize: 3, prefetch: 0 });
    const first = loader[Symbol.asyncIterator]().next();
    let isOver = false;
    const over = first.catch((error: unknown) => {
      isOver = true;
      return error;
    });
    await turn();
    dataset.fail(2, new Error('third'));
    dataset.fail(1, new Error('second'));
    await turn();
    expect(isOver).toBe(false);
    dataset.finish(0);
    expect(await over).toMatchObject({ message: 'second' });
  });

  it('loses no error when one get throws and another rejects', async () => {
    const get = (index: number) => {
      if (index === 1) throw new Error('thrown');
      return Promise.reject<number>(new Error('rejected'));
    };
    const reading = (async () => {
      for await (const _ of new DataLoader({ length: 2, get }, { batchSize: 2 }));
    })();
    await expect(reading).rejects.toThrow('rejected');
  });

  it('pulls a stream only as far ahead as it may, and closes it on break', async () => {
    let pulled = 0;
    let isClosed = false;
    async function* stream(): AsyncGenerator<number, void, undefined> {
      try {
        for (;;) yield pulled++;
      } finally {
        isClosed = true;
      }
    }
    const loader = new DataLoader(stream(), { batchSize: 2, prefetch: 1, collate: (samples) => samples });
    for await (const batch of loader) {
      await turn();
      expect(pulled).toBe(batch[0] === 0 ? 4 : 6);
      if (batch[0] === 2) break;
    }
    expect(isClosed).toBe(true);
  });

  it('closes a stream whose samples cannot be collated', async () => {
    let isClosed = false;
    async function* stream(): AsyncGenerator<number[], void, undefined> {
      try {
        yield [1];
        yield [1, 2];
        yield [3];
      } finally {
        isClosed = true;
      }
    }
    const reading = (async () => {
      for await (const _ of new DataLoader(stream(), { batchSize: 2 }));
    })();
    await expect(reading).rejects.toThrow('expected an array of 1, got an array of 2');
    expect(isClosed).toBe(true);
  });

  it('brings the error of a stream after the batches before it', async () => {
    const error = new Error('connection reset');
    async function* stream(): AsyncGenerator<number, void, undefined> {
      yield* [1, 2, 3];
      throw error;
    }
    const seen: number[][] = [];
    const loader = new DataLoader(stream(), { batchSize: 2, prefetch: 5, collate: (samples) => samples });
    const reading = (async () => {
      for await (const batch of loader) seen.push(batch);
    })();
    await expect(reading).rejects.toBe(error);
    expect(seen).toEqual([[1, 2]]);
  });
});

describe('a loop over a synchronous stream', () => {
  function* forever(): Generator<number> {
    for (;;) yield 1;
  }

  it('gives the event loop turns, so that timers fire while it runs', async () => {
    let hasFired = false;
    setTimeout(() => {
      hasFired = true;
    }, 1);
    const endMs = performance.now() + 60_000;
    for await (const _ of new DataLoader({ [Symbol.iterator]: forever })) {
      if (hasFired || performance.now() > endMs) break;
    }
    expect(hasFired).toBe(true);
  });

  it('lets callbacks of the garbage collector run', async () => {
    let collected = 0;
    const registry = new FinalizationRegistry(() => collected++);
    const endMs = performance.now() + 60_000;
    for await (const batch of new DataLoader({ [Symbol.iterator]: forever })) {
      registry.register(batch, null);
      if (collected > 0 || performance.now() > endMs) break;
    }
    expect(collected).toBeGreaterThan(0);
  });
});
