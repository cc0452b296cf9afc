import { describe, expect, it } from 'vitest';
import { solo } from '../../../src/backends/solo.ts';
import { systemFailure } from '../../../src/errors.ts';
import {
  anySource,
  type Backend,
  type BufferLike,
  bufferSymbol,
  CollectiveError,
  dtypes,
  Group,
  loopback,
  loopbackGroups,
  type Work,
} from '../../../src/index.ts';

const f32 = (...values: number[]) => Float32Array.from(values);
const soloGroup = () => new Group(solo(), { name: 'solo', timeoutMs: 1_000 });

const failureOf = async (call: () => unknown): Promise<CollectiveError> => {
  try {
    await call();
  } catch (error) {
    if (CollectiveError.is(error)) return error;
    throw error;
  }
  throw new Error('the call did not fail');
};

describe('arguments', () => {
  const [group] = loopbackGroups(4) as [Group];
  const other = f32(1, 2);
  // The name of each call says what is wrong with it. errors.test.ts tests the full messages.
  const refused: Record<string, [code: string, text: string, call: (group: Group) => PromiseLike<unknown>]> =
    {
      buffer: ['INVALID', 'cannot use a plain array', (g) => g.allReduce([1, 2] as never)],
      'no output': ['INVALID', 'cannot use null as a buffer', (g) => g.allGather(other, null as never)],
      'no list of outputs': [
        'INVALID',
        'cannot use null as a buffer',
        (g) => g.allGather([other], null as never),
      ],
      op: ['INVALID', "unknown op 'mean'", (g) => g.allReduce(other, { op: 'mean' as never })],
      'op on dtype': [
        'UNSUPPORTED',
        "'avg' is not defined",
        (g) => g.allReduce(new Int32Array(2), { op: 'avg' }),
      ],
      factor: ['INVALID', 'expected a number, got none', (g) => g.allReduce(other, { op: 'premulSum' })],
      'factor without premulSum': [
        'INVALID',
        "'factor' has no meaning",
        (g) => g.allReduce(other, { factor: 2 }),
      ],
      wire: [
        'INVALID',
        "there is no wire 'int4'; expected 'full', 'bfloat16' or 'int8'",
        (g) => g.allReduce(other, { wire: 'int4' as never }),
      ],
      'wire for max': [
        'INVALID',
        "wire 'bfloat16' is for sum and avg of float32, got max of float32",
        (g) => g.allReduce(other, { op: 'max', wire: 'bfloat16' }),
      ],
      'wire for float64': [
        'INVALID',
        'got sum of float64',
        (g) => g.allReduce(new Float64Array(2), { wire: 'bfloat16' }),
      ],
      'wire int8 for max': [
        'INVALID',
        "wire 'int8' is for sum and avg of float32, got max of float32",
        (g) => g.allReduce(other, { op: 'max', wire: 'int8' }),
      ],
      'residual without int8': [
        'INVALID',
        "expected that wire, got 'bfloat16'",
        (g) => g.allReduce(other, { wire: 'bfloat16', residual: f32(0, 0) }),
      ],
      'residual of a reproducible sum': [
        'INVALID',
        "expected that wire, got 'full'",
        (g) => g.allReduce(other, { reproducible: true, residual: f32(0, 0) }),
      ],
      'length of the residual': [
        'INVALID',
        'expected 2 × float32, got 1 × float32',
        (g) => g.allReduce(other, { wire: 'int8', residual: f32(0) }),
      ],
      'type of the residual': [
        'INVALID',
        'got 2 × float64',
        (g) => g.allReduce(other, { wire: 'int8', residual: new Float64Array(2) }),
      ],
      'buffer as its residual': [
        'INVALID',
        'the residual shares memory with the buffer',
        (g) => g.allReduce(other, { wire: 'int8', residual: other }),
      ],
      'residual of a list': [
        'INVALID',
        'a residual belongs to one buffer',
        (g) => g.allReduce([other, f32(1)], { wire: 'int8', residual: f32(0, 0, 0) }),
      ],
      root: ['INVALID', 'root is not a rank', (g) => g.broadcast(other, { root: 4 })],
      'fraction as root': ['INVALID', 'root is not a rank', (g) => g.broadcast(other, { root: 0.5 })],
      peer: ['INVALID', 'peer is not a rank', (g) => g.send(other, -1)],
      '-1 as peer': [
        'INVALID',
        'peer is not a rank of the group; expected 0 to 3, got -1',
        (g) => g.recv(other, -1),
      ],
      'itself as peer': ['INVALID', 'is this rank itself', (g) => g.recv(other, 0)],
      tag: ['INVALID', 'tag is not usable', (g) => g.send(other, 1, { tag: 2 ** 29 })],
      'message of a batch': ['INVALID', 'peer is not a rank', (g) => g.batch([{ send: other, to: 4 }])],
      'output dtype': ['INVALID', 'output is int32', (g) => g.allGather(other, new Int32Array(8))],
      'output length': [
        'INVALID',
        'output has the wrong length; expected 8',
        (g) => g.allGather(other, f32(1)),
      ],
      'input length': [
        'INVALID',
        'input has the wrong length; expected 8',
        (g) => g.reduceScatter(f32(1), other),
      ],
      'output of gather on the root': ['INVALID', 'the root needs an output', (g) => g.gather(other, null)],
      'output of gather elsewhere': [
        'INVALID',
        'only the root, rank 1, has an output',
        (g) => g.gather(other, f32(...Array(8)), { root: 1 }),
      ],
      'input of scatter elsewhere': [
        'INVALID',
        'only the root, rank 1, has an input',
        (g) => g.scatter(f32(...Array(8)), other, { root: 1 }),
      ],
      counts: [
        'INVALID',
        'counts is not usable; expected a length for each of 4 ranks, got [1, 2]',
        (g) => g.allGather(other, f32(1, 2, 3), { counts: [1, 2] }),
      ],
      'hole in counts': [
        'INVALID',
        'counts is not usable; expected a length for each of 4 ranks, got [1, undefined, 1, 1]',
        // biome-ignore lint/suspicious/noSparseArray: what is refused
        (g) => g.allGather(f32(1), f32(1, 2, 3), { counts: [1, , 1, 1] as number[] }),
      ],
      'contributions that are not to be reproducible': [
        'INVALID',
        'allReduce: contributions are always added reproducibly; expected reproducible: true or no such option, got false',
        (g) => g.allReduce(f32(1), { contributions: [f32(1), f32(2)], reproducible: false }),
      ],
      'contributions of reduceScatter that are not to be reproducible': [
        'INVALID',
        'reduceScatter: contributions are always added reproducibly',
        (g) => g.reduceScatter(null, f32(1), { contributions: [f32(1, 2, 3, 4)], reproducible: false }),
      ],
      'own part': [
        'INVALID',
        'input has the wrong length; expected 1 elements, got 2',
        (g) => g.allGather(other, new Float32Array(10), { counts: [1, 2, 3, 4] }),
      ],
      'whole of parts': [
        'INVALID',
        'input has the wrong length; expected 11',
        (g) => g.reduceScatter(new Float32Array(10), other, { counts: [2, 2, 3, 4] }),
      ],
      'list length': [
        'INVALID',
        'a part for each of 4 ranks, got 2',
        (g) => g.allGather(other, [f32(1, 2), f32(1, 2)]),
      ],
      'list part': [
        'INVALID',
        'output has the wrong length for rank 2; expected 2 elements, got 3',
        (g) => g.gather(other, [f32(1, 2), f32(1, 2), f32(1, 2, 3), f32(1, 2)]),
      ],
      'dtype in a list': [
        'INVALID',
        'the parts of output differ in dtype',
        (g) => g.allGather(other, [f32(1, 2), f32(1, 2), f32(1, 2), new Int32Array(2)]),
      ],
      'plain array in the place of a list': [
        'INVALID',
        'cannot use a plain array as a buffer',
        (g) => g.broadcast([1, 2] as never),
      ],
      'order, which is that of PyTorch': [
        'INVALID',
        'output has the wrong length; expected 32 elements, got 2 (group "loopback", rank 0 of 4). ' +
          'The input comes first: allGather(input, output).',
        (g) => g.allGather(new Float32Array(8), other),
      ],
      'order of a list, which is that of PyTorch': [
        'INVALID',
        'output is a list and input is one buffer; expected one buffer as output and 4 parts as input, or two lists',
        (g) => g.reduceScatter(f32(1), [f32(1), f32(1), f32(1), f32(1)]),
      ],
      number: ['INVALID', 'Put it into an array: Float64Array.of(3).', (g) => g.allReduce(3 as never)],
      'undefined for null': [
        'INVALID',
        'Pass null on the ranks that are not the root.',
        (g) => g.gather(other, undefined as never, { root: 1 }),
      ],
      'member of many': [
        'INVALID',
        'output has the wrong length; expected 8',
        (g) => g.allGather([other, other], [new Float32Array(8), f32(1)]),
      ],
      'number of many': ['INVALID', 'lists of different lengths', (g) => g.allGather([other], [])],
      'counts of many': [
        'INVALID',
        "'counts' has no meaning",
        (g) => g.allGather([other], [other], { counts: [1] }),
      ],
      'length of allToAll': ['INVALID', 'cannot be split evenly', (g) => g.allToAll(other, f32(1, 2))],
      'counts of allToAll': [
        'INVALID',
        'only one is given',
        (g) => g.allToAll(other, f32(1, 2), { sendCounts: [] }),
      ],
      'own counts of allToAll': [
        'INVALID',
        'counts differ for rank 0 itself',
        (g) => g.allToAll(other, f32(1), { sendCounts: [2, 0, 0, 0], recvCounts: [1, 0, 0, 0] }),
      ],
      'list and buffer': ['INVALID', 'only one is a list', (g) => g.allToAll([other], other)],
      overlap: [
        'INVALID',
        'share memory',
        (g) => {
          const whole = new Float32Array(8);
          return g.allGather(whole.subarray(1, 3), whole);
        },
      ],
      label: [
        'INVALID',
        'label is not usable; expected a string that is not empty, got 3',
        (g) => g.allReduce(other, { label: 3 as never }),
      ],
      'empty label': ['INVALID', "that is not empty, got ''", (g) => g.allGatherObject(1, { label: '' })],
      timeout: ['INVALID', 'timeoutMs is not usable', (g) => g.barrier({ timeoutMs: 0 })],
      device: [
        'UNSUPPORTED',
        'cannot reach cuda:0 memory',
        (g) => {
          const device = { kind: 'cuda', index: 0 } as const;
          const view = {
            dtype: 'float32',
            count: 1,
            device,
            host: null,
            handle: { address: 16n, owner: {} },
          } as const;
          return g.allReduce({ [bufferSymbol]: () => view });
        },
      ],
    };

  it.each(Object.entries(refused))('refuses a wrong %s', async (_, [code, text, call]) => {
    const error = await failureOf(() => call(group));
    expect([error.code, error.message.includes(text)]).toEqual([`ERR_COLL_${code}`, true]);
  });

  /** Returns elements on a device from `address` on; a new handle at each call, as tensors give. */
  const onCuda = (count: number, address = 0, index = 0): BufferLike => ({
    [bufferSymbol]: () => ({
      ...{ dtype: 'float32', count, device: { kind: 'cuda', index }, host: null },
      handle: { address: BigInt(0x10000 + address), owner: {} },
    }),
  });

  it('of one operation are on one device, or refused', async () => {
    const calls: [text: string, call: (group: Group) => PromiseLike<unknown>][] = [
      ['input is on the host, output on cuda:0', (g) => g.allGather(other, onCuda(2))],
      ['input is on cuda:1, output on the host', (g) => g.gather(onCuda(2, 0, 1), f32(0, 0))],
      ['input is on the host, output on cuda:0', (g) => g.scatter(other, onCuda(2))],
      ['input is on cuda:0, output on cuda:1', (g) => g.allToAll(onCuda(2), onCuda(2, 0, 1))],
      ['input is on cuda:1, output on cuda:0', (g) => g.reduceScatter(onCuda(2, 0, 1), onCuda(2))],
      ['input is on the host, output on cuda:0', (g) => g.allGather([other], [onCuda(2)])],
    ];
    const solitary = soloGroup();
    for (const [text, call] of calls) {
      const error = await failureOf(() => call(solitary));
      expect([error.code, error.what]).toEqual([
        'ERR_COLL_INVALID',
        `input and output are on different devices; expected one for both, ${text}`,
      ]);
    }
    expect(solitary.failure).toBeNull();
  });

  it('may not overlap on a device, whatever their handles', async () => {
    const solitary = soloGroup();
    for (const address of [0, 4, 28]) {
      const error = await failureOf(() => solitary.allToAll(onCuda(8), onCuda(8, address)));
      expect([error.code, error.what]).toEqual([
        'ERR_COLL_INVALID',
        'input and output share memory; expected two separate buffers',
      ]);
    }
    const residual = await failureOf(() =>
      solitary.allReduce(onCuda(8, 8), { wire: 'int8', residual: onCuda(8) }),
    );
    expect(residual.what).toContain('the residual shares memory with the buffer');
  });

  it('of a message of another length fail, and name the verbs that take any length', async () => {
    const [sender, receiver] = loopbackGroups(2) as [Group, Group];
    const works = [sender.send(f32(1, 2, 3), 1), receiver.batch([{ recv: new Float32Array(5), from: 0 }])];
    for (const work of works) {
      await expect(work).rejects.toMatchObject({
        code: 'ERR_COLL_MISMATCH',
        message: expect.stringContaining('use sendObject() and recvObject()'),
      });
    }
  });

  it('may be wrong without harm: nothing was sent, no number was used', async () => {
    const groups = loopbackGroups(2);
    for (let i = 0; i < 3; i++) await failureOf(() => (groups[0] as Group).broadcast(other, { root: 9 }));
    await failureOf(() => (groups[0] as Group).send(other, 0));
    await failureOf(() => (groups[0] as Group).allReduce([other, new Int8Array(1)], { op: 'avg' }));
    await failureOf(() => (groups[0] as Group).allGatherObject(() => {}));
    const works = groups.map((each) => each.allReduce(f32(1)));
    await Promise.all(works);
    expect(works.map(({ seq }) => seq)).toEqual([0, 0]);
    expect(groups.map(({ failure }) => failure)).toEqual([null, null]);
  });

  it('of adjacent memory are no overlap', async () => {
    const whole = f32(5, 0);
    await soloGroup().allGather(whole.subarray(0, 1), whole.subarray(1, 2));
    expect([...whole]).toEqual([5, 5]);
  });

  it('throw from the Sync form and reject from the plain one', async () => {
    const solitary = soloGroup();
    expect(() => solitary.allReduceSync(new Int8Array(1), { op: 'avg' })).toThrow(
      "'avg' is not defined for int8",
    );
    const work = solitary.allReduce(new Int8Array(1), { op: 'avg' });
    expect([work.done, work.seq]).toEqual([true, -1]);
    await expect(work).rejects.toThrow("'avg' is not defined for int8");
    expect(() => work.fence()).toThrow("'avg' is not defined for int8");
  });

  it('are refused where the backend lacks the verb or may not block', async () => {
    const noPeers = await failureOf(() => soloGroup().send(other, 1));
    expect([noPeers.code, noPeers.message]).toEqual([
      'ERR_COLL_UNSUPPORTED',
      'send: a group of one rank has no other rank to exchange messages with (group "solo", rank 0 of 1). ' +
        'Start several ranks, as with `npx ringwise run --nproc-per-node 2`, or leave the call out where group.size is 1.',
    ]);
    for (const call of [
      () => soloGroup().recv(other, 0),
      () => soloGroup().batch([{ send: other, to: 1 }]),
      () => soloGroup().sendObject({}, 1),
      () => soloGroup().recvObject(anySource),
    ])
      expect((await failureOf(call)).what).toBe(
        'a group of one rank has no other rank to exchange messages with',
      );
    expect(() => group.barrierSync()).toThrow('barrier: the loopback backend may not block this thread');
  });
});

describe('a call that the backend refuses', () => {
  it('fails alone, before it takes a number', async () => {
    const refuses: NonNullable<Backend['refuses']> = ({ verb }) =>
      verb === 'broadcast' ? systemFailure(verb, null, 'not today') : null;
    const group = new Group({ ...solo(), refuses }, { name: 'solo', timeoutMs: 1_000 });
    for (const call of [() => group.broadcast(f32(1)), () => group.broadcastSync([f32(1), f32(2)])])
      expect((await failureOf(call)).what).toBe('not today');
    const work = group.allReduce(f32(1));
    await work;
    expect([work.seq, group.failure]).toEqual([0, null]);
  });
});

it('shrink() needs subgroups as well as survivors', async () => {
  const survivors = async (candidates: readonly number[]) => [...candidates];
  const group = new Group(solo(), { name: 'solo', timeoutMs: 1_000, survivors });
  const { code, verb } = await failureOf(() => group.shrink({ without: [] }));
  expect([code, verb]).toEqual(['ERR_COLL_UNSUPPORTED', 'shrink']);
});

it('shrink() says so if all ranks would be left out, as after calls that did not match', async () => {
  const survivors = async (candidates: readonly number[]) => [...candidates];
  const subgroups = () => Promise.reject(new Error('not reached'));
  const group = new Group(solo(), { name: 'solo', timeoutMs: 1_000, survivors, subgroups });
  const { code, message } = await failureOf(() => group.shrink({ without: [0] }));
  expect([code, message]).toEqual([
    'ERR_COLL_INVALID',
    'shrink: no rank would stay, as every rank of the group is left out; expected at least one to stay (group "solo", rank 0 of 1). ' +
      'Pass the ranks that are lost as { without }. If calls did not match, none is lost: make a new group with init().',
  ]);
});

describe('numbers', () => {
  it('count collectives together, and sends and receives by peer', async () => {
    const [a, b, c] = loopbackGroups(3) as [Group, Group, Group];
    const all = () => [a, b, c].map((group) => group.barrier());
    const works: Work<unknown>[] = [
      ...all(),
      a.send(f32(1), 1),
      a.send(f32(1), 1),
      a.send(f32(1), 2),
      ...all(),
    ];
    works.push(b.recv(f32(0), 0), b.recv(f32(0), 0), c.recv(f32(0), 0));
    await Promise.all(works);
    expect(works.map(({ seq }) => seq)).toEqual([0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1, 0]);
  });
});

describe('the first error', () => {
  it('stays the cause of every later one, and keeps its code and peers', async () => {
    const groups = loopbackGroups(2) as [Group, Group];
    const pending = groups[0].allReduce(f32(1));
    const error = await failureOf(() => groups[0].barrier({ timeoutMs: 20 }));
    expect([error.code, error.peers, groups[0].failure]).toEqual(['ERR_COLL_TIMEOUT', [1], error]);
    expect(await failureOf(() => pending)).toBe(error);
    for (const call of [
      () => groups[0].barrier(),
      () => groups[0].broadcast(f32(1)),
      () => groups[0].send(f32(1), 1),
    ]) {
      const later = await failureOf(call);
      expect([later.code, later.peers, later.cause]).toEqual([error.code, error.peers, error]);
    }
    expect(() => groups[0].alloc(1)).toThrow(
      'alloc: the group failed earlier, barrier: no answer from rank 1',
    );
  });

  it('is a system error if the backend throws an error of another kind', async () => {
    const fail = () => {
      throw new RangeError('out of range');
    };
    const broken: Backend = { ...solo(), start: fail, run: fail };
    for (const verb of ['barrier', 'barrierSync'] as const) {
      const group = new Group(broken, { name: 'broken', timeoutMs: 1_000 });
      const error = await failureOf(() => group[verb]());
      expect([error.code, error.cause]).toEqual(['ERR_COLL_SYSTEM', new RangeError('out of range')]);
      expect((await failureOf(() => group.barrierSync())).cause).toBe(error);
    }
  });

  it('comes from abort() with its reason, once', async () => {
    const groups = loopbackGroups(2) as [Group, Group];
    const reason = new Error('loss is NaN');
    groups[1].abort(reason);
    groups[1].abort('again');
    const [far, near] = await Promise.all(groups.map((group) => failureOf(() => group.barrier())));
    expect([near?.cause, near?.secondary]).toEqual([groups[1].failure, false]);
    expect(groups[1].failure?.cause).toBe(reason);
    expect(groups[1].failure?.what).toBe('rank 1 aborted the group: loss is NaN');
    expect([far?.what, far?.secondary]).toEqual(['rank 1 aborted the group: loss is NaN', true]);
  });
});

it.each([
  ['without a prototype', Object.create(null), 'an object (without a prototype)'],
  [
    'an error with such a message',
    Object.assign(new Error('x'), { message: Object.create(null) }),
    'an object',
  ],
  ['a number', 5, '5'],
  ['a symbol', Symbol('why'), 'Symbol(why)'],
])('abort() accepts any reason: %s', async (_, reason: unknown, text) => {
  const groups = loopbackGroups(2) as [Group, Group];
  groups[1].abort(reason);
  for (const group of groups) {
    const { code, message } = await failureOf(() => group.barrier());
    expect([code, message]).toEqual([
      'ERR_COLL_ABORTED',
      expect.stringContaining(`aborted the group: ${text}`),
    ]);
  }
});

describe('register', () => {
  it('registers memory with the backend, and deregisters it when told', async () => {
    const calls: string[] = [];
    const register: Backend['register'] = ({ count }) => {
      calls.push(`register ${count}`);
      return () => calls.push(`deregister ${count}`);
    };
    const group = new Group({ ...solo(), register }, { name: 'g', timeoutMs: 1_000 });
    const takeBack = group.register(f32(1, 2, 3));
    expect(calls).toEqual(['register 3']);
    takeBack();
    expect(calls).toEqual(['register 3', 'deregister 3']);
    expect(() => group.register([1] as never)).toThrow('register: cannot use');
    await group.close();
    expect(() => group.register(f32(1))).toThrow('register: the group is closed');
  });

  it('does nothing where the backend has no use for it', async () => {
    await using group = new Group(solo(), { name: 'g', timeoutMs: 1_000 });
    expect(group.register(f32(1))()).toBeUndefined();
  });
});

describe('a deadline', () => {
  it('is the group’s, unless the call has its own', async () => {
    const [group] = loopback(2).map((backend) => new Group(backend, { name: 'g', timeoutMs: 30 })) as [Group];
    expect((await failureOf(() => group.barrier())).what).toBe('no answer from rank 1 within 30 ms');
    const [own] = loopbackGroups(2) as [Group];
    expect((await failureOf(() => own.barrier({ timeoutMs: 20 }))).what).toBe(
      'no answer from rank 1 within 20 ms',
    );
  });

  it('of a receive names the sender', async () => {
    const groups = loopbackGroups(3) as [Group, Group, Group];
    const error = await failureOf(() => groups[2].recv(f32(1), 1, { timeoutMs: 20 }));
    expect([error.verb, error.seq, error.peers]).toEqual(['recv', 0, [1]]);
  });
});

describe('close', () => {
  it('is run by `await using`', async () => {
    const group = soloGroup();
    {
      await using inner = group;
      await inner.barrier();
    }
    expect(group.isClosed).toBe(true);
    expect((await failureOf(() => group.barrier())).code).toBe('ERR_COLL_CLOSED');
  });

  it('runs its hook once, also when the backend cannot leave', async () => {
    let closes = 0;
    const backend = { ...solo(), close: () => Promise.reject(new Error('stuck')) };
    const onClose = async () => {
      closes++;
    };
    const group = new Group(backend, { name: 'x', timeoutMs: 1_000, onClose });
    await expect(group.close()).rejects.toThrow('stuck');
    await expect(group.close()).rejects.toThrow('stuck');
    expect(closes).toBe(1);
  });
});

describe('alloc', () => {
  it('gives a typed array, or { data, dtype } where there is none', () => {
    const group = soloGroup();
    const floats: Float32Array = group.alloc(3);
    const halves: { data: Uint16Array; dtype: 'bfloat16' } = group.alloc(2, 'bfloat16');
    expect([floats, halves, group.alloc(1, 'int64')]).toEqual([
      new Float32Array(3),
      { data: new Uint16Array(2), dtype: 'bfloat16' },
      new BigInt64Array(1),
    ]);
    for (const dtype of dtypes) group.alloc(0, dtype);
    expect(() => group.alloc(-1)).toThrow(
      'alloc: count is not usable; expected a whole number of elements, got -1',
    );
    expect(() => group.alloc(2 ** 50)).toThrow(
      expect.objectContaining({
        code: 'ERR_COLL_UNSUPPORTED',
        what: expect.stringMatching(/^the solo backend has no memory for 1125899906842624 × float32: /),
      }),
    );
    expect(() => group.alloc(1, 'float8' as never)).toThrow('alloc: unknown dtype float8');
  });
});
