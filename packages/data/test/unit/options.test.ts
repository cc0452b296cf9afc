// Everything that takes options refuses unknown names and values of the wrong kind. The test finds the functions
// with options in the sources, so a new one cannot be forgotten.
import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { syntheticDigits } from '../../src/datasets/synthetic.ts';
import { CsvFile } from '../../src/formats/csv/index.ts';
import { loadMnist, readIdx } from '../../src/formats/idx/index.ts';
import { ImageFolder } from '../../src/formats/images/index.ts';
import { ParquetFile } from '../../src/formats/parquet/index.ts';
import { tarSamples } from '../../src/formats/tar/index.ts';
import { TokenFile } from '../../src/formats/tokens/index.ts';
import * as data from '../../src/index.ts';

type Call = (options: never) => unknown;

const numbers = [1, 2, 3];
const loader = (options: unknown): unknown => new data.DataLoader(numbers, options as never);

/** Calls each function that takes options; the other arguments are valid. */
const calls: Readonly<Record<string, Call>> = {
  'new DataLoader': loader,
  'new BatchSampler': (o) => new data.BatchSampler([0, 1], 1, o),
  'new RandomSampler': (o) => new data.RandomSampler(3, o),
  'new SubsetRandomSampler': (o) => new data.SubsetRandomSampler([0, 1], o),
  'new WeightedRandomSampler': (o) => new data.WeightedRandomSampler([1, 1], 1, o),
  'new DistributedSampler': (o) => new data.DistributedSampler(3, o),
  'new BlockRandomSampler': (o) => new data.BlockRandomSampler([3], o),
  'new LengthGroupedSampler': (o) => new data.LengthGroupedSampler([3], o),
  shard: (o) => data.shard(numbers, o),
  normalize: (o) => data.normalize(new Uint8Array(1), o),
  progress: (o) => data.progress(new data.DataLoader(numbers), o),
  readIdx: (o) => readIdx('nowhere', o),
  loadMnist: (o) => loadMnist('nowhere', o),
  syntheticDigits: (o) => syntheticDigits(o),
  'new TokenFile': (o) => new TokenFile('nowhere', o),
  tarSamples: (o) => tarSamples([], o),
  'CsvFile.open': (o) => CsvFile.open('nowhere', o),
  'ParquetFile.open': (o) => ParquetFile.open('nowhere', o),
  'ImageFolder.open': (o) => ImageFolder.open('nowhere', o),
};

const isOptions = (parameter: ts.ParameterDeclaration): boolean =>
  /Options?(<.*>)?\b/.test(parameter.type?.getText() ?? '');

/** Returns the exported functions, constructors and static methods of a source file that take options. */
function takersIn(source: ts.SourceFile): string[] {
  const takers: string[] = [];
  const kinds = (node: ts.Node): readonly ts.SyntaxKind[] =>
    (ts.canHaveModifiers(node) ? (ts.getModifiers(node) ?? []) : []).map(({ kind }) => kind);
  for (const statement of source.statements) {
    if (!kinds(statement).includes(ts.SyntaxKind.ExportKeyword)) continue;
    if (ts.isFunctionDeclaration(statement) && statement.parameters.some(isOptions))
      takers.push(statement.name!.text);
    if (!ts.isClassDeclaration(statement)) continue;
    const name = statement.name!.text;
    for (const member of statement.members) {
      const own = kinds(member);
      if (own.includes(ts.SyntaxKind.PrivateKeyword) || own.includes(ts.SyntaxKind.ProtectedKeyword))
        continue;
      if (ts.isConstructorDeclaration(member) && member.parameters.some(isOptions))
        takers.push(`new ${name}`);
      if (ts.isMethodDeclaration(member) && ts.isIdentifier(member.name) && member.parameters.some(isOptions))
        takers.push(`${name}.${member.name.getText()}`);
    }
  }
  return takers;
}

/** Functions that get options from another function of the package, which has checked them. */
const internal = new Set([
  'indexedBatches',
  'streamBatching',
  'workerOptions',
  'checkedLoaderOptions',
  'checkedOptions',
  'new WorkerPool',
  'new DataError',
]);

async function failureOf(
  call: () => unknown,
): Promise<{ readonly code?: string; readonly message?: string }> {
  try {
    await call();
  } catch (error) {
    return error as Error;
  }
  return {};
}

test('everything that takes options is in the table', () => {
  const root = new URL('../../src/', import.meta.url);
  const takers = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) =>
      takersIn(
        ts.createSourceFile(name, readFileSync(new URL(name, root), 'utf8'), ts.ScriptTarget.Latest, true),
      ),
    );
  const known = new Set(takers.filter((name) => !internal.has(name)));
  expect(Object.keys(calls).toSorted()).toEqual([...known].toSorted());
});

describe('refuses', () => {
  test.each(Object.keys(calls))('unknown options and values that are no options: %s', async (name) => {
    const unknown = await failureOf(() => calls[name]!({ __nope: 1 } as never));
    expect(unknown).toMatchObject({
      code: 'ERR_DATA_ARGUMENT',
      message: expect.stringContaining("unknown option '__nope'; "),
    });
    for (const wrong of [5, 'x', true, numbers, null]) {
      const { code, message } = await failureOf(() => calls[name]!(wrong as never));
      expect([name, wrong, code, message]).toEqual([
        name,
        wrong,
        'ERR_DATA_ARGUMENT',
        expect.stringMatching(/options are|is no/),
      ]);
    }
  });

  test.each([
    ['workers', "expected 'numWorkers'"],
    ['num_workers', "expected 'numWorkers'"],
    ['batch_size', "expected 'batchSize'"],
    ['batchsize', "expected 'batchSize'"],
    ['batchSise', "did you mean 'batchSize'"],
    ['drop_last', "expected 'dropLast'"],
    ['pin_memory', "expected 'pinMemory'"],
    ['collate_fn', "expected 'collate'"],
    ['prefetch_factor', "expected 'prefetch'"],
    ['persistent_workers', "expected 'persistentWorkers'"],
    ['batch_sampler', "expected 'batchSampler'"],
    ['generator', "expected 'seed'"],
    ['timeout', "expected 'timeoutMs'"],
    ['worker_init_fn', "Export initWorker from the data set's module."],
  ])('%s, a name of PyTorch or a misspelt one', (name, sentence) => {
    expect(() => loader({ [name]: 1 })).toThrow(`DataLoader: unknown option '${name}'; `);
    expect(() => loader({ [name]: 1 })).toThrow(sentence);
  });

  test('num_replicas and numReplicas of samplers', () => {
    for (const name of ['num_replicas', 'numReplicas', 'world_size']) {
      const options = { [name]: 2, rank: 0 } as never;
      expect(() => new data.DistributedSampler(3, options)).toThrow(
        `unknown option '${name}'; expected 'replicas'.`,
      );
      expect(() => data.shard(numbers, options)).toThrow("expected 'replicas'");
    }
  });

  test.each([
    ['batchSize', '32', "batchSize: expected an integer of at least 1, got '32'."],
    ['batchSize', 0, 'got 0'],
    ['batchSize', 1.5, 'got 1.5'],
    ['batchSize', Number.NaN, 'got NaN'],
    ['numWorkers', '2', "got '2'"],
    ['numWorkers', -1, 'numWorkers: expected an integer from 0 to 1024, got -1.'],
    ['prefetch', 0.5, 'prefetch: expected an integer of at least 0, got 0.5.'],
    ['timeoutMs', '1000', "timeoutMs: expected an integer of at least 1, got '1000'."],
    ['workerSeed', Infinity, 'got Infinity'],
    ['seed', '1', "seed: expected an integer of at least 0, got '1'."],
    ['shuffle', 'false', "shuffle: expected true or false, got 'false'."],
    ['dropLast', 1, 'dropLast: expected true or false, got 1.'],
    ['persistentWorkers', 'no', "got 'no'"],
    ['pinMemory', true, 'pinMemory: expected a function, got true.'],
    ['collate', {}, 'collate: expected a function, got an object.'],
    ['sampler', 5, 'sampler: expected an iterable, such as a sampler or an array, got 5.'],
    [
      'batchSampler',
      [[0], 1],
      'batchSampler[1]: expected a list of indices, as [[0, 1], [2]]; single ones are a sampler, got 1.',
    ],
    [
      'batchSampler',
      () => [],
      'batchSampler: expected an iterable, such as a sampler or an array, got a function.',
    ],
  ])('a loader with %s %j', (name, value, sentence) => {
    expect(() => loader({ [name]: value })).toThrow(sentence);
    expect(() => new data.DataLoader({ *[Symbol.iterator]() {} }, { [name]: value } as never)).toThrow(
      sentence,
    );
  });

  test.each<[string, () => unknown, string]>([
    [
      'no options',
      () => new data.DistributedSampler(3, undefined as never),
      'replicas: expected an integer of at least 1, got undefined.',
    ],
    [
      'a rank too many',
      () => new data.DistributedSampler(3, { replicas: 2, rank: 2 }),
      'rank: expected an integer from 0 to 1, got 2.',
    ],
    [
      'a data set',
      () => new data.DistributedSampler(numbers as never, { replicas: 2, rank: 0 }),
      'DistributedSampler: length: expected an integer from 1 to 214748363, got an array of 3.',
    ],
    ['replicas as text', () => data.shard(numbers, { replicas: '2', rank: 0 } as never), "got '2'"],
    [
      'dropLast as text',
      () => new data.DistributedSampler(3, { replicas: 2, rank: 0, dropLast: 'false' } as never),
      "dropLast: expected true or false, got 'false'.",
    ],
    [
      'shuffle as text',
      () => new data.DistributedSampler(3, { replicas: 2, rank: 0, shuffle: 'no' } as never),
      "got 'no'",
    ],
    [
      'weights as text',
      () => new data.WeightedRandomSampler(['1', '2'] as never, 1),
      'weight 0: expected a finite number of at least 0',
    ],
    [
      'a number of weights',
      () => new data.WeightedRandomSampler(3 as never, 1),
      'weights: expected an array, got 3.',
    ],
    [
      'a number for indices',
      () => new data.Subset({ length: 3, get: (i) => i }, 2 as never),
      'Subset: indices: expected an array, got 2.',
    ],
    [
      'a number for a sampler',
      () => new data.BatchSampler(10 as never, 2),
      'BatchSampler: sampler: expected an iterable',
    ],
    [
      'std as text',
      () => data.normalize(new Uint8Array(1), { std: '1' } as never),
      "normalize: std: expected a finite number, got '1'.",
    ],
    [
      'mean NaN',
      () => data.normalize(new Uint8Array(1), { mean: Number.NaN }),
      'normalize: mean: expected a finite number, got NaN.',
    ],
    [
      'a list to normalize',
      () => data.normalize(numbers as never),
      'normalize: data: expected a typed array of numbers, got an array of 3.',
    ],
    [
      'bigints to normalize',
      () => data.normalize(BigInt64Array.of(1n) as never),
      'normalize: data: expected a typed array of numbers, got ',
    ],
    [
      'no transform',
      () => data.mapDataset({ length: 1, get: (i) => i }, 5 as never),
      'mapDataset: transform: expected a function, got 5.',
    ],
    [
      'a field without a shape',
      () => new data.ArrayDataset({ x: { data: new Float32Array(2) } } as never),
      'shape of "x": expected a list of integers ≥ 0, got undefined.',
    ],
    [
      'a field that is an array',
      () => new data.ArrayDataset({ x: new Float32Array(2) } as never),
      'field "x": expected { data, shape }, with the shape of one sample, got ',
    ],
    [
      'a field of numbers',
      () => new data.ArrayDataset({ x: { data: numbers, shape: [] } } as never),
      'data of "x": expected a typed array, got an array of 3.',
    ],
    ['a number for a data set', () => new data.DataLoader(5 as never), 'the first argument is no data set'],
    ['text for a data set', () => new data.DataLoader('abc' as never), 'the first argument is no data set'],
    [
      'stride of tokens',
      () => new TokenFile('nowhere', { block: 4, stride: '4' } as never),
      "stride: expected an integer of at least 1, got '4'.",
    ],
    [
      'dtype of tokens',
      () => new TokenFile('nowhere', { block: 4, dtype: 'int16' } as never),
      "dtype: expected 'uint16' or 'uint32', got 'int16'.",
    ],
    [
      'a size of digits',
      () => syntheticDigits({ count: '5' } as never),
      "count: expected an integer from 1 to 16777216, got '5'.",
    ],
  ])('%s', (_, call, sentence) => expect(call).toThrow(sentence));

  test.each<[string, () => Promise<unknown>, string]>([
    [
      'split',
      () => loadMnist('nowhere', { split: 'val' } as never),
      "split: expected 'train' or 'test', got 'val'.",
    ],
    [
      'maxBytes',
      () => readIdx('nowhere', { maxBytes: Number.NaN }),
      'maxBytes: expected an integer of at least 1, got NaN.',
    ],
    [
      'channels',
      () => ImageFolder.open('nowhere', { height: 1, width: 1, channels: 4 } as never),
      'channels: expected 1 or 3, got 4.',
    ],
    [
      'height',
      () => ImageFolder.open('nowhere', { height: '8', width: 8 } as never),
      "height: expected an integer of at least 1, got '8'.",
    ],
    [
      'columns of CSV',
      () => CsvFile.open('nowhere', { columns: ['x'] } as never),
      'type of column "0": expected float32, float64, int32, string, got \'x\'.',
    ],
    [
      'a type of CSV',
      () => CsvFile.open('nowhere', { columns: { x: 'float' } } as never),
      'type of column "x"',
    ],
    [
      'no columns',
      () => CsvFile.open('nowhere', undefined as never),
      'columns: expected an object of types by name, got undefined.',
    ],
    [
      'columns of Parquet',
      () => ParquetFile.open('nowhere', { columns: 'x' } as never),
      "columns: expected a list of names, got 'x'.",
    ],
  ])('%s of a file', async (_, call, sentence) => {
    await expect(call()).rejects.toThrow(sentence);
    await expect(call()).rejects.toMatchObject({ code: 'ERR_DATA_ARGUMENT' });
  });
});

test.each<[string, () => unknown, string]>([
  [
    'loadDataset',
    () => data.loadDataset(undefined as never),
    'loadDataset: module: expected the URL of a module',
  ],
  ['loadDataset', () => data.loadDataset({} as never), 'got an object'],
  ['defaultCollate', () => data.defaultCollate({} as never), 'defaultCollate: samples: expected an array'],
  [
    'progress',
    () => data.progress(undefined as never),
    'progress: loader: expected a DataLoader, got undefined',
  ],
])('%s refuses an argument of another type with a sentence', async (_, call, sentence) => {
  const failed = (async () => await call())();
  await expect(failed).rejects.toMatchObject({ code: 'ERR_DATA_ARGUMENT' });
  await expect(failed).rejects.toThrow(sentence);
});

test.each([
  ['CsvFile', CsvFile],
  ['ParquetFile', ParquetFile],
  ['ImageFolder', ImageFolder],
])('a reader that loads a package says how it is opened (%s)', (name, reader) => {
  const make = reader as unknown as new (path: string, options: object) => unknown;
  const expected = `new ${name}(): expected await ${name}.open(…). It loads a package first, so it is asynchronous.`;
  expect(() => new make('nowhere', { columns: {}, height: 1, width: 1 })).toThrow(expected);
});
