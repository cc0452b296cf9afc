// Calls refuse unknown options, and values that could be mistaken for others, before they send anything.
import { MemoryStore } from '@ringwise/store';
import { describe, expect, it } from 'vitest';
import { solo } from '../../../src/backends/solo.ts';
import {
  anySource,
  CollectiveError,
  Group,
  init,
  joinNccl,
  loopbackGroups,
  registerBackend,
} from '../../../src/index.ts';
import { unknownOption } from '../../../src/options/option-names.ts';

const messageOf = async (call: () => unknown): Promise<string> => {
  try {
    await call();
  } catch (error) {
    if (!CollectiveError.is(error)) throw error;
    expect(error.code).toBe('ERR_COLL_INVALID');
    return error.message;
  }
  return 'accepted';
};

const x = new Float32Array(2);
const y = new Float32Array(4);

/** Every call that takes options, by name. The other arguments are right for rank 0 of two. */
const calls: Record<string, (group: Group, options: never) => unknown> = {
  allReduce: (g, o) => g.allReduce(x, o),
  reduce: (g, o) => g.reduce(x, o),
  broadcast: (g, o) => g.broadcast(x, o),
  allGather: (g, o) => g.allGather(x, y, o),
  gather: (g, o) => g.gather(x, y, o),
  scatter: (g, o) => g.scatter(y, x, o),
  reduceScatter: (g, o) => g.reduceScatter(y, x, o),
  allToAll: (g, o) => g.allToAll(x, x.slice(), o),
  send: (g, o) => g.send(x, 1, o),
  recv: (g, o) => g.recv(x, 1, o),
  batch: (g, o) => g.batch([], o),
  barrier: (g, o) => g.barrier(o),
  monitoredBarrier: (g, o) => g.monitoredBarrier(o),
  broadcastObject: (g, o) => g.broadcastObject(1, o),
  allGatherObject: (g, o) => g.allGatherObject(1, o),
  gatherObject: (g, o) => g.gatherObject(1, o),
  scatterObject: (g, o) => g.scatterObject([1, 2], o),
  sendObject: (g, o) => g.sendObject(1, 1, o),
  recvObject: (g, o) => g.recvObject(1, o),
  split: (g, o) => g.split(0, 0, o),
  subgroup: (g, o) => g.subgroup([0], o),
  shrink: (g, o) => g.shrink(o),
};
/** The Sync forms, on a group of one. */
const syncCalls: typeof calls = {
  allReduceSync: (g, o) => g.allReduceSync(x, o),
  reduceSync: (g, o) => g.reduceSync(x, o),
  broadcastSync: (g, o) => g.broadcastSync(x, o),
  allGatherSync: (g, o) => g.allGatherSync(x, x.slice(), o),
  gatherSync: (g, o) => g.gatherSync(x, x.slice(), o),
  scatterSync: (g, o) => g.scatterSync(x, x.slice(), o),
  reduceScatterSync: (g, o) => g.reduceScatterSync(x, x.slice(), o),
  allToAllSync: (g, o) => g.allToAllSync(x, x.slice(), o),
  sendSync: (g, o) => g.sendSync(x, 1, o),
  recvSync: (g, o) => g.recvSync(x, 1, o),
  batchSync: (g, o) => g.batchSync([], o),
  barrierSync: (g, o) => g.barrierSync(o),
  monitoredBarrierSync: (g, o) => g.monitoredBarrierSync(o),
  broadcastObjectSync: (g, o) => g.broadcastObjectSync(1, o),
  allGatherObjectSync: (g, o) => g.allGatherObjectSync(1, o),
  gatherObjectSync: (g, o) => g.gatherObjectSync(1, o),
  scatterObjectSync: (g, o) => g.scatterObjectSync([1], o),
  sendObjectSync: (g, o) => g.sendObjectSync(1, 1, o),
  recvObjectSync: (g, o) => g.recvObjectSync(1, o),
};
const two = loopbackGroups(2) as [Group, Group];
const alone = new Group(solo(), { name: 'solo', timeoutMs: 1_000 });
const every = [
  ...Object.entries(calls).map(([name, call]) => [name, two[0], call] as const),
  ...Object.entries(syncCalls).map(([name, call]) => [name, alone, call] as const),
];

describe('options', () => {
  it.each(every)('of %s are known by name, and its deadline is a number', async (name, group, call) => {
    const verb = name.replace(/Sync$/, '');
    const told = (options: unknown) => messageOf(() => call(group, options as never));
    expect(await told({ timeout: 5 })).toMatch(`${verb}: unknown option 'timeout'; expected 'timeoutMs' (`);
    expect(await told({ timeout_ms: 5 })).toMatch("unknown option 'timeout_ms'; expected 'timeoutMs' (");
    expect(await told({ timoutMs: 5 })).toMatch("unknown option 'timoutMs'; did you mean 'timeoutMs' (");
    expect(await told({ async_op: undefined })).toMatch(
      /unknown option 'async_op'; .*its Sync form blocks\.$/,
    );
    expect(await told(30)).toMatch(`${verb}: options are a number; expected an object (`);
    expect(await told(null)).toMatch('options are null; expected an object');
    for (const timeoutMs of [
      '60000',
      Number.NaN,
      -1,
      0,
      Number.POSITIVE_INFINITY,
      2 ** 31,
      null,
      5n,
      [5],
      {},
    ]) {
      expect(await told({ timeoutMs })).toMatch(
        `${verb}: timeoutMs is not usable; expected 1 to 2147483647 milliseconds, got `,
      );
    }
  });

  it('that were refused harm nothing', async () => {
    const sums = two.map((group) => group.allReduce(Float32Array.of(group.rank)));
    await Promise.all(sums);
    expect([sums[0]!.seq, two[0].failure]).toEqual([0, null]);
  });

  it("are refused under PyTorch's names, with their names here", async () => {
    const told = (name: string, options: object) => messageOf(() => calls[name]!(two[0], options as never));
    expect(await told('broadcast', { src: 0 })).toMatch("unknown option 'src'; expected 'root'");
    expect(await told('reduce', { dst: 0 })).toMatch("unknown option 'dst'; expected 'root'");
    expect(await told('gatherObject', { dst: 0 })).toMatch("unknown option 'dst'; expected 'root'");
    expect(await told('allToAll', { input_split_sizes: [1, 1] })).toMatch("expected 'sendCounts'");
    expect(await told('allReduce', { group: two[0] })).toMatch('A group is what the call is made on');
    expect(await told('allReduce', { reduce_op: 'sum' })).toMatch("expected 'op'");
    expect(await told('gather', { gather_list: [] })).toMatch('Buffers are arguments, not options.');
    const ops = {
      SUM: 'sum',
      mean: 'avg',
      AVG: 'avg',
      PRODUCT: 'prod',
      MAX: 'max',
      BXOR: 'bxor',
      premul_sum: 'premulSum',
    };
    for (const [foreign, op] of Object.entries(ops)) {
      expect(await told('allReduce', { op: foreign })).toMatch(`unknown op '${foreign}'; expected '${op}' (`);
    }
    for (const op of [null, 7, 'toString', ''])
      expect(await told('allReduce', { op })).toMatch(/unknown op .*; expected one of sum, avg, /);
  });

  it('of the wrong kind do not pass for their default', async () => {
    const wrong: [string, object, string][] = [
      ['allReduce', { reproducible: 'yes' }, "reproducible is not usable; expected true or false, got 'yes'"],
      ['reduceScatter', { reproducible: 1 }, 'reproducible is not usable'],
      ['reduce', { contributions: x }, 'contributions is not usable; expected a list of buffers'],
      ['allReduce', { contributions: null }, 'contributions is not usable'],
      ['allReduce', { op: 'premulSum', factor: '2' }, "needs this rank's factor; expected a number, got '2'"],
      ['allReduce', { op: 'premulSum', factor: true }, "needs this rank's factor"],
      ['allReduce', { factor: '1' }, "'factor' has no meaning"],
      ['allReduce', { wire: null }, "there is no wire 'null'"],
      ['allReduce', { residual: null }, 'cannot use null as a buffer'],
      ...[
        'broadcast',
        'reduce',
        'gather',
        'scatter',
        'broadcastObject',
        'gatherObject',
        'scatterObject',
      ].flatMap((name): [string, object, string][] => [
        [name, { root: '0' }, `${name}: root is not a rank of the group; expected 0 to 1, got '0'`],
        [name, { root: 2 }, `${name}: root is not a rank of the group; expected 0 to 1, got 2`],
        [name, { root: null }, `${name}: root is not a rank`],
        [name, { root: Number.NaN }, `${name}: root is not a rank`],
      ]),
      [
        'allGather',
        { counts: ['2', '2'] },
        "counts is not usable; expected a length for each of 2 ranks, got ['2', '2']",
      ],
      ['allGather', { counts: [7, 7] }, 'input has the wrong length; expected 7 elements, got 2'],
      ['allGather', { counts: [2] }, 'counts is not usable'],
      ['gather', { counts: 2 }, 'counts is not usable; expected a length for each of 2 ranks, got 2'],
      ['scatter', { counts: [1, 1] }, 'output has the wrong length; expected 1 elements, got 2'],
      ['reduceScatter', { counts: [3, 3] }, 'output has the wrong length'],
      ['reduceScatter', { counts: [3, 3], reproducible: true }, 'output has the wrong length'],
      [
        'reduceScatter',
        { counts: '22' },
        "counts is not usable; expected a length for each of 2 ranks, got '22'",
      ],
      ['allToAll', { sendCounts: 1, recvCounts: 1 }, 'sendCounts is not usable'],
      ['allToAll', { sendCounts: ['1', '1'], recvCounts: [1, 1] }, 'sendCounts is not usable'],
      ['send', { tag: 1.5 }, 'tag is not usable; expected 0 to 536870911, got 1.5'],
      ['recv', { tag: '1' }, "tag is not usable; expected 0 to 536870911, got '1'"],
      ['sendObject', { tag: -1 }, 'tag is not usable'],
      ['recvObject', { tag: null }, 'tag is not usable'],
      ['split', { name: 7 }, 'split: name is not usable; expected a string that is not empty, got 7'],
      ['subgroup', { name: '' }, 'subgroup: name is not usable'],
      [
        'shrink',
        { waitMs: '5' },
        "shrink: waitMs is not usable; expected 1 to 2147483647 milliseconds, got '5'",
      ],
    ];
    for (const [name, options, text] of wrong)
      expect([name, options, await messageOf(() => calls[name]!(two[0], options as never))]).toEqual([
        name,
        options,
        expect.stringContaining(text),
      ]);
  });
});

describe('arguments besides options', () => {
  const [group] = two;
  it.each<[string, () => unknown, string]>([
    [
      'peer of send',
      () => group.send(x, '1' as never),
      "peer is not a rank of the group; expected 0 to 1, got '1'",
    ],
    [
      'anySource as peer of send',
      () => group.send(x, anySource as never),
      'peer is not a rank of the group; expected 0 to 1, got Symbol(ringwise.anySource)',
    ],
    [
      'peer of recv',
      () => group.recv(x, '1' as never),
      "peer is not a rank of the group; expected 0 to 1, got '1'",
    ],
    ['peer of recvObject', () => group.recvObject(undefined as never), 'peer is not a rank'],
    [
      'batch',
      () => group.batch({ send: x, to: 1 } as never),
      'batch: messages is not usable; expected a list of',
    ],
    [
      'message',
      () => group.batch([x] as never),
      'batch: message 0 is not usable; expected { send, to, tag }',
    ],
    [
      'name in a message',
      () => group.batch([{ send: x, to: 1, tags: 1 } as never]),
      "unknown option 'tags'; did you mean 'tag' (message 0)",
    ],
    [
      "PyTorch's name in a message",
      () => group.batch([{ recv: x, src: 1 } as never]),
      "unknown option 'src'; expected 'from'",
    ],
    [
      'both in a message',
      () => group.batch([{ send: x, to: 1, recv: x, from: 1 } as never]),
      "unknown option 'recv'",
    ],
    [
      'color',
      () => group.split('1' as never),
      "color is not usable; expected a whole number, or null for no group, got '1'",
    ],
    ['key', () => group.split(0, '1' as never), "key is not usable; expected a number, got '1'"],
    ['list of ranks', () => group.subgroup(0 as never), 'subgroup: the list of ranks is not usable'],
    ['rank in a list', () => group.subgroup(['0'] as never), "got ['0']"],
    [
      'count of alloc',
      () => group.alloc('4' as never),
      "alloc: count is not usable; expected a whole number of elements, got '4'",
    ],
    [
      'name of a backend',
      () => registerBackend('', async () => solo()),
      'registerBackend: name is not usable',
    ],
    [
      'factory',
      () => registerBackend('x', {} as never),
      'registerBackend: factory is not usable; expected a function',
    ],
    ['size of loopbackGroups', () => loopbackGroups('2' as never), 'loopbackGroups: size is not usable'],
    ['options of loopbackGroups', () => loopbackGroups(2, { timeout: 1 } as never), "expected 'timeoutMs'"],
    [
      'options of Group',
      () => new Group(solo(), { name: 'x', timeoutMs: 1, rank: 3 } as never),
      "unknown option 'rank'; did you mean 'ranks'",
    ],
  ])('a wrong %s', async (_, call, text) => {
    expect(await messageOf(call)).toContain(text);
  });
});

describe('init()', () => {
  it.each<[object, string]>([
    [{ world_size: 2 }, "init: unknown option 'world_size'; expected 'size'."],
    [{ init_method: 'env://' }, "init: unknown option 'init_method'; expected 'url'."],
    [{ timeout: 5 }, "init: unknown option 'timeout'; expected 'timeoutMs'."],
    [{ group_name: 'a' }, "init: unknown option 'group_name'; expected 'name'."],
    [{ backends: 'host' }, "init: unknown option 'backends'; did you mean 'backend'."],
    [{ device_id: 0 }, 'A group takes the device of the memory that it is given.'],
    ['host' as never, 'init: options are a string; expected an object.'],
    [
      { timeoutMs: '60000' },
      "init: timeoutMs is not usable; expected 1 to 2147483647 milliseconds, got '60000'.",
    ],
    [{ rank: '0', size: 2 }, "init: rank is not usable; expected a number, got '0'."],
    [{ rank: 0, size: '2' }, "init: size is not usable; expected a number, got '2'."],
    [{ backend: 7 }, 'init: backend is not usable; expected a string, got 7.'],
    [{ name: '' }, 'init: name is not usable'],
    [{ url: 5 }, 'init: url is not usable; expected a string, got 5.'],
    [{ store: {}, rank: 0, size: 2 }, 'init: store is not usable; expected a Store of @ringwise/store'],
    [
      { store: { get() {}, set() {}, wait() {} }, rank: 0, size: 2 },
      'an object with its methods (missing: add, compareSet, check, delete, multiGet), got an object (Object).',
    ],
  ])('refuses %o', async (options, text) => {
    expect(await messageOf(() => init(options))).toContain(text);
  });

  it('reads the numbers of a url as numbers', async () => {
    const told = (query: string) =>
      init({ url: `tcp://127.0.0.1:1?${query}` }).then(String, ({ message }) => message);
    expect(await told('rank=&size=2')).toMatch('got rank none, size 2');
    expect(await told('rank=0&world_size=2')).toMatch("unknown option 'world_size'; expected 'size'");
  });
});

describe('joinNccl()', () => {
  const right = { store: new MemoryStore(), key: 'id', rank: 0, size: 1 };
  it.each<[object, string]>([
    [{ ...right, world_size: 1 }, "joinNccl: unknown option 'world_size'; expected 'size'."],
    [{ ...right, timeoutMs: '5' }, 'joinNccl: timeoutMs is not usable'],
    [{ ...right, key: 7 }, 'joinNccl: key is not usable'],
    [{ ...right, store: null }, 'joinNccl: store is not usable'],
  ])('refuses %o', async (options, text) => {
    expect(await messageOf(() => joinNccl(options as never))).toContain(text);
  });
});

describe('unknownOption', () => {
  it('finds the first own key that is not known, and says what would be right', () => {
    const known = ['labelSmoothing', 'padding', 'op'];
    const inherited = Object.assign(Object.create({ foo: 1 }), { padding: 1 });
    for (const options of [undefined, {}, { padding: undefined }, inherited])
      expect(unknownOption(options, known)).toBeNull();
    expect(
      [
        { op: 1, label_smoothing: 0.1 },
        { LABELSMOOTHING: 0.1 },
        { pading: 1 },
        { foo: 1 },
        { ab: 1 },
        { smoothing: 1 },
        { toString: 1 },
        true,
        () => {},
        [1],
        new Float32Array(1),
      ].map((options) => unknownOption(options, known, { smoothing: 'labelSmoothing' })),
    ).toMatchInlineSnapshot(`
      [
        "unknown option 'label_smoothing'; expected 'labelSmoothing'",
        "unknown option 'LABELSMOOTHING'; expected 'labelSmoothing'",
        "unknown option 'pading'; did you mean 'padding'",
        "unknown option 'foo'; expected labelSmoothing, padding, op",
        "unknown option 'ab'; expected labelSmoothing, padding, op",
        "unknown option 'smoothing'; expected 'labelSmoothing'",
        "unknown option 'toString'; expected labelSmoothing, padding, op",
        "options are a boolean; expected an object",
        "options are a function; expected an object",
        "options are an array; expected an object",
        "options are a typed array; expected an object",
      ]
    `);
    expect(unknownOption({ x: 1 }, [])).toBe("unknown option 'x'; expected no options");
  });
});
