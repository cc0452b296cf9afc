// Gives a state to ranks that have none, over loopback groups.
import { type Group, loopbackGroups } from '@ringwise/collectives';
import { packState } from '@ringwise/ddp';
import { describe, expect, it } from 'vitest';
import { chunksBySource, chunksOf } from '../../../src/transfer/chunks.ts';
import { firstDifference } from '../../../src/transfer/headers.ts';
import { type TransferReport, transfer } from '../../../src/transfer/transfer.ts';

interface State {
  step: number;
  arrays: Record<string, Float32Array | Uint8Array>;
}

const full = (): State => ({
  step: 12,
  arrays: {
    long: Float32Array.from({ length: 1000 }, (_, i) => Math.sin(i)),
    short: Uint8Array.of(1, 2, 3),
    none: new Float32Array(0),
    middle: Float32Array.from({ length: 77 }, (_, i) => i / 3),
  },
});

async function run(size: number, joined: number[], body: (group: Group) => Promise<unknown>) {
  const groups = loopbackGroups(size, { timeoutMs: 60_000 });
  const outcomes = await Promise.allSettled(groups.map(body));
  await Promise.all(groups.map((group) => group.close().catch(() => {})));
  return { outcomes, joined };
}

describe('all ranks have the state afterwards', () => {
  for (const [size, joined] of [
    [2, [1]],
    [2, [0]],
    [4, [2]],
    [4, [0, 3]],
    [5, [1, 2, 3, 4]],
  ] as [number, number[]][])
    it(`ranks ${joined.join(', ')} of ${size} join`, async () => {
      const states: State[] = [];
      const reports: unknown[] = [];
      await run(size, joined, async (group) => {
        states[group.rank] = joined.includes(group.rank) ? { step: 0, arrays: {} } : full();
        reports[group.rank] = await transfer(
          group,
          joined,
          {
            save: () => states[group.rank],
            load: (value) => {
              states[group.rank] = value as State;
            },
          },
          { chunkBytes: 512 },
        );
      }).then(({ outcomes }) => {
        for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
      });
      for (const state of states) expect(state).toEqual(full());
      const sources = [...Array(size).keys()].filter((rank) => !joined.includes(rank));
      for (const report of reports)
        expect(report).toEqual({ bytes: 4311, stateBytes: 4311, chunks: 9, sources });
    });
});

describe('a joiner that has a part of the state', () => {
  const give = async (held: State, size = 3) => {
    const states: State[] = [];
    const loads: ReadonlySet<string>[] = [];
    const reports: TransferReport[] = [];
    const { outcomes } = await run(size, [size - 1], async (group) => {
      const isJoining = group.rank === size - 1;
      states[group.rank] = isJoining ? held : full();
      reports[group.rank] = await transfer(group, [size - 1], {
        save: () => states[group.rank],
        held: () => packState(held),
        load: (value, unchanged) => {
          states[group.rank] = value as State;
          loads.push(unchanged);
        },
      });
    });
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    for (const state of states) expect(state).toEqual(full());
    return { bytes: reports.map((report) => report.bytes), unchanged: [...loads[0]!] };
  };

  it('gets nothing if it has all', async () => {
    expect(await give(full())).toEqual({ bytes: [0, 0, 0], unchanged: ['step', 'arrays'] });
  });

  it('gets the arrays that differ', async () => {
    const held = full();
    held.arrays.middle![5]! += 1e-7;
    held.step = 11;
    expect(await give(held)).toEqual({ bytes: [308, 308, 308], unchanged: [] });
    expect(await give(held, 2)).toEqual({ bytes: [308, 308], unchanged: [] });
  });

  it('gets all if it has other arrays', async () => {
    const held = full();
    delete held.arrays.short;
    expect(await give(held)).toEqual({ bytes: [4311, 4311, 4311], unchanged: ['step'] });
  });
});

it('is refused by all ranks if two that have the state differ', async () => {
  const { outcomes } = await run(3, [2], async (group) => {
    const state = { lr: group.rank === 1 ? 0.2 : 0.1, steps: [1, 2] };
    await transfer(group, [2], { save: () => state, load: () => expect.unreachable() });
  });
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({
      reason: {
        code: 'ERR_ELASTIC_STATE',
        message: expect.stringContaining(
          'rank 1 holds another state than the first member: state.lr is 0.1 on one and 0.2',
        ),
      },
    });
});

it('loads nothing if a chunk was damaged on the way', async () => {
  let loads = 0;
  const { outcomes } = await run(2, [1], async (group) => {
    // Flips a bit of what the joiner receives.
    const { recv } = group;
    const damaged = Object.assign(Object.create(group) as Group, {
      recv: (buffer: Uint8Array, from: number) =>
        recv.call(group, buffer, from).then(() => {
          buffer[5]! ^= 1;
        }),
    });
    const bound = new Proxy(damaged, {
      get: (target, name) => {
        const own = Object.hasOwn(target, name) ? target : group;
        const value = Reflect.get(own, name, own) as unknown;
        return typeof value === 'function' ? value.bind(own) : value;
      },
    });
    const state = { save: full, load: () => loads++ };
    await transfer(bound, [1], state);
  });
  expect(loads).toBe(0);
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({
      reason: {
        code: 'ERR_ELASTIC_STATE',
        message: expect.stringContaining(
          'that rank 0 sent to rank 1 does not match its SHA-256; nothing was loaded',
        ),
      },
    });
});

it('says on all ranks why a state does not fit', async () => {
  const { outcomes } = await run(3, [0, 2], async (group) => {
    const load = () => {
      if (group.rank === 2) throw new Error('w expected [3], got [4]');
    };
    await transfer(group, [0, 2], { save: full, load });
  });
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({
      reason: {
        message:
          'transfer: rank 2 cannot load the state of the training: w expected [3], got [4]. Make the same model, optimizer and extra state on all ranks.',
      },
    });
});

it('ends with the error of the group if a source is lost', async () => {
  const { outcomes } = await run(3, [2], async (group) => {
    if (group.rank === 1) return await group.close();
    await transfer(group, [2], { save: full, load: () => expect.unreachable() });
  }).catch(() => expect.unreachable());
  expect(outcomes[0]).toMatchObject({ reason: { code: expect.stringMatching(/TIMEOUT|PEER_LOST/) } });
  expect(outcomes[2]).toMatchObject({ reason: { code: expect.stringMatching(/TIMEOUT|PEER_LOST/) } });
});

describe('chunks', () => {
  it('cover all bytes once, in order, and none is larger than the limit', () => {
    for (let most = 1; most < 12; most++) {
      const arrays = [5, 0, 3, 11, 1, 1].map((bytes) => ({ bytes }));
      const chunks = chunksOf(arrays, most);
      const seen = chunks.flatMap(({ pieces }) =>
        pieces.flatMap(({ array, from, to }) =>
          Array.from({ length: to - from }, (_, i) => `${array}:${from + i}`),
        ),
      );
      const all = arrays.flatMap(({ bytes }, array) =>
        Array.from({ length: bytes }, (_, i) => `${array}:${i}`),
      );
      expect(seen).toEqual(all);
      for (const { bytes } of chunks.slice(0, -1)) expect(bytes).toBe(most);
      for (const sources of [1, 2, 3, 7]) {
        const shares = chunksBySource(chunks, sources);
        expect(shares.flat()).toEqual(chunks);
        const sizes = shares.map((share) => share.reduce((sum, { bytes }) => sum + bytes, 0));
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(2 * most);
      }
    }
  });

  it('are none without bytes', () => expect(chunksOf([{ bytes: 0 }])).toEqual([]));
});

it('finds the first difference', () => {
  expect(firstDifference({ a: [1, { b: 2 }] }, { a: [1, { b: 3 }] })).toBe(
    'state.a.1.b is 2 on one and 3 on the other',
  );
  expect(firstDifference({ a: 1 }, { a: 1, b: null })).toBe(
    'state.b is undefined on one and null on the other',
  );
});
