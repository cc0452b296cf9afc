// Tests worker threads. Uses the built package, because a worker of Node 20 cannot run TypeScript.
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect, promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const dist = new URL('../../dist/index.js', import.meta.url).href;
const data: typeof import('../../src/index.ts') = await import(dist);
const { DataLoader, DistributedSampler, loadDataset, workerInfo } = data;
type DatasetOf<T> = import('../../src/index.ts').Dataset<T>;

interface Square {
  readonly square: Float32Array;
  readonly worker: number;
  readonly seed: number;
}

const fixture = (name: string) => new URL(`../fixtures/${name}.mjs`, import.meta.url);
const squares = (length: number, fault: string | null = null) =>
  loadDataset<DatasetOf<Square>>(fixture('squares'), { length, fault });

async function collect<T>(batches: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const batch of batches) all.push(batch);
  return all;
}

it('gives the batches that one thread gives, in order, made by all workers in turn', async () => {
  const dataset = await squares(23);
  const options = { batchSize: 4, shuffle: true, seed: 3 };
  await using loader = new DataLoader(dataset, { ...options, numWorkers: 3, workerSeed: 100 });
  const alone = new DataLoader(dataset, options);
  for (let pass = 0; pass < 2; pass++) {
    const batches = await collect(loader);
    const expected = await collect(alone);
    expect(batches.map(({ square }) => square)).toEqual(expected.map(({ square }) => square));
    const workers = batches.map(({ worker }) => worker.data[0]!);
    expect(new Set(workers)).toEqual(new Set([0, 1, 2]));
    expect(batches.map(({ seed }) => seed.data[0])).toEqual(workers.map((id) => 100 + id));
  }
  expect(workerInfo()).toBeNull();
});

it('refuses indices that the data set does not have, also those that an int32 cannot hold', async () => {
  const dataset = await squares(3);
  for (const index of [3, -1, 0.5, Number.NaN, 2 ** 32, undefined as never, '1' as never]) {
    await using loader = new DataLoader(dataset, { sampler: [0, index], numWorkers: 1 });
    await expect(collect(loader)).rejects.toMatchObject({
      code: 'ERR_DATA_INDEX',
      message: expect.stringContaining(
        `DataLoader: index ${inspect(index)} is outside the data set`,
      ) as unknown,
    });
  }
});

it('gives single samples, of which the data set keeps its memory, and passes each to collate', async () => {
  await using loader = new DataLoader(await loadDataset<DatasetOf<Float32Array>>(fixture('kept')), {
    ...{ batchSize: null, numWorkers: 2 },
  });
  for (let pass = 0; pass < 2; pass++)
    expect(await collect(loader)).toEqual([
      Float32Array.of(0, 0),
      Float32Array.of(1, 1),
      Float32Array.of(2, 2),
    ]);
  const stream = await loadDataset<AsyncIterable<number>>(fixture('numbers'), { length: 3 });
  await using numbers = new DataLoader(stream, { batchSize: null, numWorkers: 1 });
  expect(await collect(numbers)).toEqual([0, 10, 20]);
});

it('resumes with workers, at another world size, without losing or repeating a sample', async () => {
  const dataset = await squares(40);
  const seen: number[] = [];
  const share = (replicas: number, rank: number) => new DistributedSampler(40, { replicas, rank, seed: 1 });
  const indicesOf = ({ square }: { square: { data: Float32Array } }) =>
    [...square.data].filter((_, i) => i % 2 === 0);
  const states = [];
  for (const rank of [0, 1]) {
    await using loader = new DataLoader(dataset, { sampler: share(2, rank), batchSize: 5, numWorkers: 2 });
    let batches = 0;
    for await (const batch of loader) {
      seen.push(...indicesOf(batch));
      if (++batches === 2) break; // later batches that workers have begun do not count
    }
    states.push(loader.state());
  }
  expect(states[1]).toEqual(states[0]);
  for (const rank of [0, 1, 2, 3]) {
    await using loader = new DataLoader(dataset, { sampler: share(4, rank), batchSize: 2, numWorkers: 1 });
    loader.load(states[0]!);
    for await (const batch of loader) seen.push(...indicesOf(batch));
  }
  expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, i) => i));
});

it('moves memory that is whole, and copies parts of something larger', async () => {
  interface Batch {
    readonly view: Float64Array;
    readonly twice: readonly Float64Array[];
    readonly bytes: Uint8Array;
  }
  const dataset = await loadDataset<import('../../src/index.ts').Dataset<number, Batch>>(fixture('views'));
  await using loader = new DataLoader(dataset, { batchSize: 10, numWorkers: 1 });
  for (let pass = 0; pass < 2; pass++) {
    for (const [i, { view, twice, bytes }] of (await collect(loader)).entries()) {
      expect(view).toEqual(Float64Array.from({ length: 10 }, (_, k) => 10 * i + k));
      expect(twice).toEqual([view, view]);
      expect(Buffer.from(bytes).toString()).toBe(`batch ${10 * i}`);
    }
  }
});

it('runs a stream in every worker, with the collate of its module', async () => {
  const stream = await loadDataset<Iterable<number>>(fixture('stream'), { length: 11 });
  interface Sums {
    readonly samples: readonly number[];
    readonly sum: number;
  }
  await using loader = new DataLoader(stream, { batchSize: 2, numWorkers: 3 });
  for (let pass = 0; pass < 2; pass++) {
    const batches = (await collect(loader)) as unknown as Sums[];
    const samples = batches.flatMap(({ samples }) => samples);
    expect([...samples].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for (const { samples, sum } of batches) expect(sum).toBe(samples.reduce((a, b) => a + b, 0));
  }
  const [first] = (await collect(new DataLoader(stream, { batchSize: 11 }))) as unknown as Sums[];
  expect(first!.sum).toBe(55);
});

it.each([
  { lengths: [0, 2], expected: [100, 101] },
  { lengths: [1, 3], expected: [0, 100, 101, 102] },
  { lengths: [0, 5, 1], expected: [100, 200, 101, 102, 103, 104] },
  { lengths: [0, 0], expected: [] },
])('yields all samples, in turn, of streams with $lengths samples', async ({ lengths, expected }) => {
  const stream = await loadDataset<Iterable<number>>(fixture('uneven-streams'), lengths);
  await using loader = new DataLoader(stream, { batchSize: null, numWorkers: lengths.length });
  for (let pass = 0; pass < 2; pass++) expect(await collect(loader)).toEqual(expected);
});

it.each([false, true])('shares a stream out over ranks and their workers, dropLast %s', async (dropLast) => {
  const parts: number[][] = [];
  for (const rank of [0, 1, 2]) {
    const args = { length: 23, replicas: 3, rank, dropLast };
    const stream = await loadDataset<Iterable<number>>(fixture('stream'), args);
    await using loader = new DataLoader(stream, { batchSize: 2, numWorkers: 2 });
    const batches = (await collect(loader)) as unknown as { readonly samples: readonly number[] }[];
    parts.push(batches.flatMap(({ samples }) => [...samples]));
  }
  const all = Array.from({ length: dropLast ? 21 : 23 }, (_, i) => i);
  expect(parts.flat().sort((a, b) => a - b)).toEqual(all);
  expect(parts.map((part) => part.length)).toEqual(dropLast ? [7, 7, 7] : [8, 8, 7]);
});

it.each([false, true])(
  'closes the streams of workers when the loop leaves early, async %s',
  async (isAsync) => {
    const folder = await mkdtemp(join(tmpdir(), 'ringwise-workers-'));
    try {
      const path = join(folder, 'passes');
      const stream = await loadDataset<Iterable<number>>(fixture('closing-stream'), { path, isAsync });
      await using loader = new DataLoader(stream, { numWorkers: 2 });
      for (const _ of [1, 2]) {
        await writeFile(path, '');
        for await (const _batch of loader) break;
        const events = (await readFile(path, 'utf8')).trim().split('\n').sort();
        expect(events).toEqual(['begun', 'begun', 'closed', 'closed']);
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);

it('sets no timer for a deadline beyond the longest timer', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  await using loader = new DataLoader(await squares(4), { numWorkers: 1, timeoutMs: 2 ** 31 });
  expect(await collect(loader)).toHaveLength(4);
  process.off('warning', note);
  expect(warnings).toEqual([]);
});

it('ends its workers after each pass with persistentWorkers: false', async () => {
  const loader = new DataLoader(await squares(4), { numWorkers: 2, persistentWorkers: false });
  expect(await collect(loader)).toHaveLength(4);
  expect(await collect(loader)).toHaveLength(4);
});

describe('an error', () => {
  it('in a worker comes at its batch, with its cause and the stack of the worker', async () => {
    await using loader = new DataLoader(await squares(20, 'throw'), { batchSize: 2, numWorkers: 2 });
    const batches: unknown[] = [];
    const failing = (async () => {
      for await (const batch of loader) batches.push(batch);
    })();
    await expect(failing).rejects.toMatchObject({
      code: 'ERR_DATA_WORKER',
      message: 'DataLoader: worker 0 failed: TypeError: no sample 5',
      stack: expect.stringContaining('squares.mjs'),
      cause: expect.objectContaining({ name: 'TypeError', message: 'no sample 5' }),
    });
    expect(batches).toHaveLength(2);
  });

  it('may be no Error', async () => {
    await using loader = new DataLoader(await squares(20, 'throw an object'), {
      batchSize: 2,
      numWorkers: 1,
    });
    await expect(collect(loader)).rejects.toMatchObject({
      message: 'DataLoader: worker 0 failed: { status: 404 }',
      cause: { status: 404 },
    });
  });

  it('is a batch that cannot be sent to another thread', async () => {
    await using loader = new DataLoader(await loadDataset(fixture('functions')), { numWorkers: 1 });
    await expect(collect(loader)).rejects.toMatchObject({
      code: 'ERR_DATA_WORKER',
      message: expect.stringMatching(
        /^DataLoader: worker 0 failed: TypeError: a batch cannot be sent .*: \(\) => 1 could not be cloned\. Expected data/,
      ),
    });
  });

  it('is a worker that ends', async () => {
    await using loader = new DataLoader(await squares(20, 'exit'), { batchSize: 2, numWorkers: 2 });
    await expect(collect(loader)).rejects.toMatchObject({
      code: 'ERR_DATA_WORKER',
      message: expect.stringContaining('worker 0 ended with exit code 3'),
    });
  });

  it('is a worker that ends, and the next pass has new workers', async () => {
    // Without prefetching, the worker's first batch has arrived before it ends at its second one.
    const options = { batchSize: 2, numWorkers: 2, prefetch: 0 };
    await using loader = new DataLoader(await squares(20, 'exit'), options);
    for (const _ of [1, 2]) {
      let batches = 0;
      const failing = (async () => {
        for await (const _batch of loader) batches++;
      })();
      await expect(failing).rejects.toMatchObject({ code: 'ERR_DATA_WORKER' });
      expect(batches).toBe(2);
    }
  });

  it('is a worker that does not answer in time', async () => {
    // The other worker, which answers, has to start within this time.
    const options = { batchSize: 2, numWorkers: 2, timeoutMs: 5_000 };
    await using loader = new DataLoader(await squares(20, 'hang'), options);
    await expect(collect(loader)).rejects.toMatchObject({
      code: 'ERR_DATA_TIMEOUT',
      message: expect.stringContaining('worker 0 within 5000 ms'),
    });
  });

  it('is not a step that takes longer than a worker may', async () => {
    const timeoutMs = 6_000; // within which the worker has to start
    await using loader = new DataLoader(await squares(8), { batchSize: 2, numWorkers: 1, timeoutMs });
    let batches = 0;
    for await (const batch of loader) {
      expect(batch.square.shape).toEqual([2, 2]);
      // Answers arrive meanwhile, but the blocked thread does not take them.
      if (++batches === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, timeoutMs + 100);
    }
    expect(loader.statistics().batches).toBe(4);
  });

  it('is a module that cannot be loaded in a worker', async () => {
    await using loader = new DataLoader(await loadDataset(fixture('broken')), { numWorkers: 1 });
    await expect(collect(loader)).rejects.toMatchObject({
      code: 'ERR_DATA_WORKER',
      message: expect.stringContaining('only in the main thread'),
    });
  });

  it('is a module that does not exist, or arguments that cannot be sent', async () => {
    for (const module of [fixture('not-there'), './squares.mjs', '/not/there.mjs', 'not-there.mjs'])
      await expect(loadDataset(module)).rejects.toMatchObject({
        code: 'ERR_DATA_MODULE',
        message: expect.stringContaining(`there is no module ${module}`),
      });
    const dataset = await loadDataset(fixture('squares'), { length: 2, fault: null, decode: () => 1 });
    await using loader = new DataLoader(dataset, { numWorkers: 1 });
    await expect(collect(loader)).rejects.toMatchObject({
      code: 'ERR_DATA_ARGUMENT',
      message: expect.stringContaining('the arguments cannot be sent to a worker thread'),
    });
  });

  it('is a module without a function, a data set that threads cannot make, a collate that cannot be sent', async () => {
    await expect(loadDataset(new URL(dist))).rejects.toMatchObject({ code: 'ERR_DATA_MODULE' });
    await expect(loadDataset(fixture('class'))).rejects.toMatchObject({
      code: 'ERR_DATA_MODULE',
      message: expect.stringContaining('got a class: export default (...args) => new It(...args).'),
    });
    expect(() => new DataLoader([1, 2], { numWorkers: 1 })).toThrow('loadDataset()');
    const dataset = await squares(2);
    const collate = (samples: unknown[]) => samples;
    expect(() => new DataLoader(dataset, { numWorkers: 1, collate })).toThrow(
      "Export it from the data set's module",
    );
  });
});

it('does not keep the process alive between passes, but does while a batch is on its way', async () => {
  const code = `import { DataLoader, loadDataset } from ${JSON.stringify(dist)};
    const dataset = await loadDataset(${JSON.stringify(fixture('squares').href)}, { length: 3 });
    let seen = 0;
    for await (const batch of new DataLoader(dataset, { numWorkers: 2 })) seen += batch.square.data[0];
    process.stdout.write(String(seen));`;
  const folder = await mkdtemp(join(tmpdir(), 'ringwise-workers-'));
  try {
    const script = join(folder, 'script.mjs');
    await writeFile(script, code);
    const { stdout } = await promisify(execFile)(process.execPath, [script], { timeout: 120_000 });
    expect(stdout).toBe('3');
  } finally {
    await rm(folder, { recursive: true });
  }
});

it('gives the event loop its turns while batches keep coming', async () => {
  await using loader = new DataLoader(await squares(400), { batchSize: 1, numWorkers: 1 });
  let turns = 0;
  const counting = setInterval(() => turns++, 1);
  for await (const _ of loader) {
    const end = performance.now() + 2;
    while (performance.now() < end);
  }
  clearInterval(counting);
  expect(turns).toBeGreaterThanOrEqual(5); // in 800 ms of steps
});

it('tells how long the loop waited and worked', async () => {
  await using loader = new DataLoader(await squares(12), { batchSize: 5, numWorkers: 1 });
  for await (const batch of loader) void batch;
  const { batches, samples, waitMs, workMs, longestWaitMs } = loader.statistics();
  expect({ batches, samples }).toEqual({ batches: 3, samples: 12 });
  expect(waitMs).toBeGreaterThan(0);
  expect(workMs).toBeGreaterThanOrEqual(0);
  expect(longestWaitMs).toBeLessThanOrEqual(waitMs);
});

describe('a data set in TypeScript', () => {
  // Node refuses flags of V8 among the options of a worker, so the loader must not pass them on.
  it.each([
    ['plain Node', []],
    ['flags of V8', ['--expose-gc']],
    ['tsx', ['--import', 'tsx']],
  ])('is made by the program and by its workers, with %s', async (_, flags) => {
    const main = fileURLToPath(new URL('../fixtures/typed-main.mjs', import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, main], {
      cwd: import.meta.dirname,
      timeout: 120_000,
    });
    expect(JSON.parse(stdout)).toEqual([9020, [0, 10], [1020, 1030], [40, 50]]);
  });

  it.skipIf('typescript' in process.features && process.features.typescript)(
    'says what to install where Node cannot run it and tsx is missing',
    async () => {
      const away = await mkdtemp(join(tmpdir(), 'typed-'));
      try {
        await cp(new URL('.', dist), join(away, 'dist'), { recursive: true });
        await writeFile(
          join(away, 'typed.ts'),
          'export default (length: number) => ({ length, get: () => 1 });',
        );
        await writeFile(
          join(away, 'main.mjs'),
          `import { loadDataset } from './dist/index.js';
          await loadDataset(new URL('./typed.ts', import.meta.url)).catch(({ code, message, cause }) =>
            console.log(JSON.stringify([code, message, cause.code])));`,
        );
        const { stdout } = await promisify(execFile)(process.execPath, [join(away, 'main.mjs')], {
          timeout: 120_000,
        });
        expect(JSON.parse(stdout)).toEqual([
          'ERR_DATA_MODULE',
          expect.stringMatching(/typed\.ts by itself; expected Node 22.* Run npm install --save-dev tsx\.$/),
          'ERR_UNKNOWN_FILE_EXTENSION',
        ]);
      } finally {
        await rm(away, { recursive: true });
      }
    },
  );
});
