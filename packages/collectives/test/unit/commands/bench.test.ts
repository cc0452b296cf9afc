// Tests the parts of `ringwise bench` that need no processes: arguments, sizes, and the expected result of every verb.
// packages/ringwise, which has the launcher, tests the command itself.
import { describe, expect, it } from 'vitest';
import { parseBench, UsageError } from '../../../bench/options.ts';
import { countWrong, fill } from '../../../bench/patterns.ts';
import { type Row, run } from '../../../bench/run.ts';
import { parseBytes, partCounts } from '../../../bench/sizes.ts';
import { rulesOf, sizesOf, tune } from '../../../bench/tune.ts';
import { benchVerbs } from '../../../bench/verbs.ts';
import {
  allocHost,
  type Backend,
  byteSize,
  dtypes,
  Group,
  loopback,
  loopbackGroups,
} from '../../../src/index.ts';

const optionsOf = (...argv: string[]) => {
  const options = parseBench(argv);
  if (options === 'help') throw new Error('unexpected help');
  return options;
};

describe('arguments', () => {
  it('have defaults, and take a verb in any spelling', () => {
    for (const word of ['all-reduce', 'all_reduce', 'allReduce', 'AllReduce']) {
      expect(optionsOf(word)).toMatchObject({
        verb: { name: 'all-reduce' },
        nprocPerNode: '2',
        sizes: { min: 4, max: 64 * 2 ** 20, factor: 4 },
        dtype: 'float32',
        op: 'sum',
        form: 'auto',
        json: false,
      });
    }
  });

  it('take flags with dashes or underscores', () => {
    const options = optionsOf('--nproc_per_node', '3', 'broadcast', '--min=1K', '--async', '--json');
    expect(options).toMatchObject({ nprocPerNode: '3', sizes: { min: 1024 }, form: 'async', json: true });
  });

  it('take -n for the number of ranks, as ringwise run does', () => {
    expect(optionsOf('all-reduce', '-n', '3').nprocPerNode).toBe('3');
  });

  it('start at one element at least', () => {
    expect(optionsOf('all-reduce', '--dtype', 'float64').sizes.min).toBe(8);
  });

  it.each([
    [[], /no verb given; expected one of all-reduce, .*See ringwise bench --help\.$/],
    [['all-redcue'], /unknown verb all-redcue; expected one of all-reduce/],
    [['all-reduce', 'broadcast'], /one verb at a time/],
    [['all-reduce', '--foo'], /: unknown flag --foo\. See/],
    [['all-reduce', '--secnds', '1'], /: unknown flag --secnds; did you mean --seconds\./],
    [['all-reduce', '-b', '8'], /: unknown flag -b; expected --min\./],
    [['all-reduce', '--max'], /--max/],
    [['all-reduce', '--max', '4X'], /--max expects bytes, as 4, 64K, 16M or 1G, got 4X/],
    [['all-reduce', '--min', '1M', '--max', '1K'], /--max 1K is less than --min 1M/],
    [['all-reduce', '--factor', '1'], /--factor expects a number from 1\.01/],
    [['all-reduce', '--dtype', 'float31'], /--dtype expects one of float32, .*got float31/],
    [
      ['all-reduce', '--dtype', 'bool'],
      /sum is not defined on bool; expected --op min, max, band, bor, bxor/,
    ],
    [['send-recv', '-n', '1'], /send-recv needs another rank; expected --nproc-per-node 2 or more, got 1/],
    [['all-reduce', '--sync', '--async'], /--sync and --async exclude each other/],
    [['all-reduce', '--tune', '--save', 'file'], /--tune excludes --save and --compare/],
  ])('%j is explained', (argv, sentence) => {
    expect(() => parseBench(argv)).toThrow(UsageError);
    expect(() => parseBench(argv)).toThrow(sentence);
  });
});

describe('sizes', () => {
  it.each([
    ['4', 4],
    ['64K', 65_536],
    ['64KiB', 65_536],
    ['16M', 16 * 2 ** 20],
    ['1g', 2 ** 30],
    ['0', null],
    ['-4', null],
    ['4.5M', null],
    ['', null],
  ])('%j are %s bytes', (text, bytes) => expect(parseBytes(text)).toBe(bytes));

  it('are whole elements in every part, at least one, each size once', () => {
    expect(partCounts({ min: 4, max: 1000, factor: 4 }, 1, 4)).toEqual([1, 4, 16, 64]);
    expect(partCounts({ min: 4, max: 1000, factor: 4 }, 3, 4)).toEqual([1, 5, 21]);
    expect(partCounts({ min: 8, max: 8, factor: 2 }, 1, 8)).toEqual([1]);
  });
});

describe('patterns', () => {
  it.each(dtypes)('of %s show every wrong element', (dtype) => {
    const contents = { rank: 1, size: 3, op: 'max' } as const;
    const parts = [0, 1, 2].map((id) => ({ kind: 'message', id }) as const);
    const view = allocHost(3 * 5000, dtype);
    fill(view, parts, contents);
    expect(countWrong(view, parts, contents)).toBe(0);
    const bytes = new Uint8Array(view.host!.buffer);
    for (const i of [0, 4999, 5000, 14_999]) bytes[i * byteSize(dtype)]! ^= 1;
    expect(countWrong(view, parts, contents)).toBe(4);
  });

  it('of different messages differ', () => {
    const view = allocHost(1000, 'float32');
    const contents = { rank: 0, size: 4, op: 'sum' } as const;
    fill(view, [{ kind: 'message', id: 0 }], contents);
    for (let id = 1; id < 16; id++) {
      expect(countWrong(view, [{ kind: 'message', id }], contents)).toBe(1000);
    }
  });
});

async function rowsOf(groups: readonly Group[], ...argv: string[]): Promise<Row[][]> {
  const options = optionsOf(...argv, '--seconds', '0.001');
  return Promise.all(
    groups.map(async (group) => {
      const rows: Row[] = [];
      for await (const row of run(group, options, () => true)) rows.push(row);
      return rows;
    }),
  );
}

describe.each(benchVerbs.map(({ name }) => name))('%s', (name) => {
  it.each(['float32', 'bfloat16', 'int8'])('of %s is measured and right', async (dtype) => {
    const groups = loopbackGroups(3);
    const [rows, ...others] = await rowsOf(
      groups,
      name,
      '--dtype',
      dtype,
      '--max',
      '40000',
      '--factor',
      '100',
    );
    for (const row of rows!) {
      expect(row).toMatchObject({ wrong: 0 });
      expect(row.iters).toBeGreaterThan(0);
      expect(row.p50Us).toBeGreaterThan(0);
    }
    expect(rows!.length).toBe(name === 'barrier' ? 1 : 3);
    expect(others.map((own) => own.map(({ bytes }) => bytes))).toEqual(
      others.map(() => rows!.map(({ bytes }) => bytes)),
    );
    await Promise.all(groups.map((group) => group.close()));
  });

  it.skipIf(name === 'barrier')('counts what a broken backend gets wrong', async () => {
    const groups = loopback(2).map((backend) => new Group(broken(backend), { name, timeoutMs: 60_000 }));
    const [rows] = await rowsOf(groups, name, '--min', '4K', '--max', '4K');
    // The results are checked before and after the timed calls; on rank 0 both are damaged.
    expect(rows![0]!.wrong).toBe(2);
    await Promise.all(groups.map((group) => group.close()));
  });
});

/** Damages one element of each result in float32, on rank 0. */
function broken(backend: Backend): Backend {
  if (backend.rank !== 0) return backend;
  return {
    ...backend,
    start: (operation, settle) =>
      backend.start(operation, (error) => {
        const result =
          'output' in operation ? operation.output : 'buffer' in operation ? operation.buffer : null;
        if (result?.host instanceof Float32Array && operation.verb !== 'send') result.host[7]! += 1;
        settle(error);
      }),
  };
}

it('ends on all ranks when rank 0 has no reader any more', async () => {
  const groups = loopbackGroups(2);
  const options = optionsOf('all-reduce', '--max', '64', '--seconds', '0.001');
  const counts = await Promise.all(
    groups.map(async (group) => {
      let rows = 0;
      for await (const row of run(group, options, () => rows < 2)) if (row.wrong === 0) rows++;
      return rows;
    }),
  );
  expect(counts).toEqual([2, 2]);
  await Promise.all(groups.map((group) => group.close()));
});

describe('tuning', () => {
  const row = (bytes: number, p50Us: number): Row => ({
    ...{ bytes, count: bytes / 4, p50Us, meanUs: p50Us, iters: 7, wrong: 0, algorithm: null },
  });

  it('takes the median of the rounds, and changes its choice only for something clearly faster', () => {
    const all = new Map([
      ['tree', [row(8, 10), row(32, 20), row(128, 40), row(8, 900), row(32, 20), row(128, 40)]],
      ['ring', [row(8, 12), row(32, 19.9), row(128, 30), row(8, 12), row(32, 19.9), row(128, 30)]],
    ]);
    all.get('tree')!.push(row(8, 10), row(32, 20), row(128, 40));
    all.get('ring')!.push(row(8, 12), row(32, 19.9), row(128, 30));
    const sizes = sizesOf(all, 2);
    expect(sizes).toEqual([
      { bytes: 4, p50Us: { tree: 10, ring: 12 }, best: 'tree' },
      { bytes: 16, p50Us: { tree: 20, ring: 19.9 }, best: 'tree' },
      { bytes: 64, p50Us: { tree: 40, ring: 30 }, best: 'ring' },
    ]);
    expect(rulesOf(sizes, ['allGather', 'full', 'flat', '2'])).toEqual([
      'allGather full flat 2 32 tree',
      'allGather full flat 2 * ring',
    ]);
  });

  it('needs several hosts', async () => {
    const groups = loopbackGroups(2);
    const tunings = groups.map((group) => tune(group, optionsOf('all-reduce', '--tune'), ['a', 'b']));
    for (const tuning of tunings) await expect(tuning).rejects.toThrow(/all ranks are on one host/);
    for (const group of groups) await group.close();
  });
});
