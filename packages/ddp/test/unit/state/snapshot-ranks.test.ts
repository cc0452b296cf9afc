// Tests that snapshot calls are collective and keep the state that each rank has for itself.
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Group, loopbackGroups } from '@ringwise/collectives';
import { type GeneratorState, generator, scope } from '@ringwise/tensor';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { assertInSync, ddp, loadSnapshot, perRank, saveSnapshot } from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';
import { lossOf, makeNet } from '../../support/tensor-mlp.ts';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ringwise-snapshot-'));
  file = join(folder, 'run.snapshot');
});
afterEach(() => rm(folder, { recursive: true }));

describe('called on rank 0 only', () => {
  const others: Record<string, (group: Group) => Promise<unknown>> = {
    'a backward': async (group) => {
      const net = makeNet(1);
      const model = await ddp(net, { group });
      if (group.rank === 0) return saveSnapshot(file, {}, group);
      scope(() => lossOf(model.forward, 0, 4).backward());
      return model.finish();
    },
    'assertInSync()': (group) =>
      group.rank === 0 ? saveSnapshot(file, {}, group) : assertInSync(makeNet(1), group),
    'ddp()': (group) => (group.rank === 0 ? saveSnapshot(file, {}, group) : ddp(makeNet(1), { group })),
    'loadSnapshot()': (group) =>
      group.rank === 0 ? saveSnapshot(file, {}, group) : loadSnapshot(file, group),
  };
  for (const [name, body] of Object.entries(others))
    it(`is named on all ranks where the others are in ${name}`, async () => {
      for (const error of reasons(await onRanks(2, body))) {
        expect(error).toMatchObject({ code: 'ERR_DDP_SNAPSHOT', ranks: [0, 1] });
        expect(error.message).toMatch(
          /^saveSnapshot: rank [01] called .* but rank [01] called .*It is collective: every rank calls saveSnapshot, although only rank 0 uses the file; take it out of `if \(rank === 0\)`\.$/,
        );
        expect(error.message).toContain('rank 0 called saveSnapshot');
      }
      expect(await readdir(folder)).toEqual([]);
    });

  it('is named on rank 0 where the others make a call of the group, or leave', async () => {
    for (const leave of [(group: Group) => group.barrier(), (group: Group) => group.close()]) {
      const outcomes = await onRanks(2, async (group) => {
        await (group.rank === 0 ? saveSnapshot(file, {}, group) : leave(group));
      });
      const [first] = outcomes as [PromiseRejectedResult];
      expect(first.reason).toMatchObject({ code: 'ERR_DDP_SNAPSHOT' });
      expect(first.reason.message).toMatch(
        /^saveSnapshot: .*It is collective: every rank calls saveSnapshot/,
      );
    }
  });

  it('is named where the others never come', async () => {
    const groups = loopbackGroups(2, { timeoutMs: 100 });
    await expect(saveSnapshot(file, {}, groups[0]!)).rejects.toMatchObject({
      code: 'ERR_DDP_SNAPSHOT',
      message: expect.stringMatching(/no answer from rank 1.*It is collective/),
    });
    await Promise.all(groups.map((group) => group.close()));
  });

  it('is named where the others have come to the next one', async () => {
    const outcomes = await onRanks(3, async (group) => {
      if (group.rank === 0) await saveSnapshot(join(folder, 'first'), {}, group);
      await saveSnapshot(join(folder, 'last'), {}, group);
    });
    for (const error of reasons(outcomes)) {
      expect(error).toMatchObject({ code: 'ERR_DDP_SNAPSHOT', ranks: [1, 2] });
      expect(error.message).toContain('rank 0 has "first"; ranks 1, 2 have "last"');
    }
    expect(await readdir(folder)).toEqual([]);
  });

  it('so is loadSnapshot()', async () => {
    const outcomes = await onRanks(2, async (group) => {
      if (group.rank === 0) await loadSnapshot(file, group);
      await ddp(makeNet(1), { group });
    });
    for (const error of reasons(outcomes))
      expect(error.message).toMatch(/^loadSnapshot: .*every rank calls loadSnapshot/);
  });
});

/** Saves `saved[r]` on rank r of `saved.length`, then loads on `size` ranks. Returns what each of these gets. */
async function through<T>(saved: readonly unknown[], size: number): Promise<T[]> {
  values(await onRanks(saved.length, (group) => saveSnapshot(file, saved[group.rank], group)));
  return values(await onRanks(size, (group) => loadSnapshot<T>(file, group))) as T[];
}

describe('state that each rank has for itself', () => {
  const position = (consumed: number) => ({ seed: 4, epoch: 2, consumed, length: 60 });
  const stateOf = (rank: number) => ({
    step: 7 + rank, // all ranks get the step of rank 0, because it is not state of a rank
    rng: generator(100 + rank).state(),
    loaders: [position(12 + rank), { ...position(rank), groupSize: 8 }],
    mine: perRank({ counts: Float64Array.of(rank, 2), note: `rank ${rank}`, big: BigInt(rank) }),
    streams: { a: perRank(generator(rank).state()) },
  });

  it('comes back to the same rank, bit for bit', async () => {
    const loaded = await through<Record<string, unknown>>([0, 1, 2].map(stateOf), 3);
    for (const [rank, each] of loaded.entries()) {
      expect(each).toEqual({
        step: 7,
        rng: { seed: 100 + rank, offset: 0 },
        loaders: [position(12 + rank), { ...position(rank), groupSize: 8 }],
        mine: { counts: Float64Array.of(rank, 2), note: `rank ${rank}`, big: BigInt(rank) },
        streams: { a: { seed: rank, offset: 0 } },
      });
    }
    expect(await readdir(folder)).toEqual(['run.snapshot']);
  });

  it('where it is the same on all ranks, goes to any number of them', async () => {
    const state = { rng: generator(3).state(), loader: position(12), mine: perRank([1, 2n]) };
    for (const size of [1, 2, 5]) {
      const loaded = await through<unknown>([state, state], size);
      expect(loaded).toEqual(
        Array(size).fill({ rng: { seed: 3, offset: 0 }, loader: position(12), mine: [1, 2n] }),
      );
    }
  });

  it('generators: fewer ranks go on with theirs, further ranks get streams that none has used', async () => {
    const at = (seed: number, offset: number) => ({ rng: { seed, offset } });
    const states = [at(5, 10), at(6, 20)];
    expect(await through(states, 1)).toEqual([at(5, 10)]);
    const more = await through<{ rng: GeneratorState }>(states, 4);
    expect(more.slice(0, 2)).toEqual(states);
    expect(await through(states, 4)).toEqual(more); // always the same states
    const later = await through<{ rng: GeneratorState }>([at(5, 11), at(6, 20)], 4);
    const all = [...more, ...later.slice(2)].map(({ rng }) => rng);
    expect(new Set(all.map(({ seed }) => seed)).size).toBe(6);
    for (const { seed, offset } of all.slice(2)) {
      expect(offset).toBe(0);
      generator(0).setState({ seed, offset });
    }
  });

  it('generators: the stream of a single rank is its own, too', async () => {
    const own = { seed: 5, offset: 10 };
    for (const state of [{ rng: own }, { rng: perRank(own) }]) {
      expect(await through([state], 1)).toEqual([{ rng: own }]);
      const loaded = await through<{ rng: GeneratorState }>([state], 3);
      expect(loaded[0]).toEqual({ rng: own });
      expect(new Set(loaded.map(({ rng }) => rng.seed)).size).toBe(3);
    }
  });

  it('anything else cannot be loaded on another number of ranks', async () => {
    for (const [state, path] of [
      [(rank: number) => ({ loader: position(rank) }), 'state.loader'],
      [(rank: number) => ({ a: [{ b: perRank(rank) }] }), 'state.a[0].b'],
    ] as const) {
      values(await onRanks(2, (group) => saveSnapshot(file, state(group.rank), group)));
      for (const error of reasons(await onRanks(3, (group) => loadSnapshot(file, group)))) {
        expect(error).toMatchObject({ code: 'ERR_DDP_SNAPSHOT' });
        expect(error.message).toContain(
          `${path} differed between the 2 ranks that saved it and cannot be loaded on 3`,
        );
      }
    }
  });

  const refused: Record<string, readonly [state: (rank: number) => unknown, sentence: string]> = {
    'not passed on a rank': [
      (rank) => (rank === 1 ? { model: 1 } : { model: 1, rng: { seed: 1, offset: 0 } }),
      'state.rng is saved for each rank, but only rank 0 has passed it and rank 1 has not',
    ],
    'passed on another rank only': [
      (rank) => (rank === 1 ? { rng: { seed: 1, offset: 0 } } : {}),
      'only rank 1 has passed it and rank 0 has not',
    ],
    'something that cannot be sent': [
      (rank) => ({ mine: perRank(rank === 1 ? { run: () => {} } : { run: 1 }) }),
      'state.mine.run: expected JSON values, bigints, typed arrays or tensors, got function. (on rank 1)',
    ],
    'a mark inside another one': [
      (rank) => ({ mine: perRank({ part: [perRank(rank)] }) }),
      'state.mine.part[0]: expected JSON values, bigints, typed arrays or tensors, got a perRank() inside another one.',
    ],
    'part of itself': [() => ({ mine: perRank(cyclic()) }), 'state.mine.self: expected JSON values'],
    'a tensor': [() => ({ mine: perRank(makeNet(1).parameters()[0]) }), 'got a tensor in perRank()'],
  };
  for (const [name, [state, sentence]] of Object.entries(refused))
    it(`is refused on all ranks where it is ${name}`, async () => {
      const outcomes = await onRanks(2, (group) => saveSnapshot(file, state(group.rank), group));
      for (const error of reasons(outcomes)) {
        expect(error).toMatchObject({ code: 'ERR_DDP_SNAPSHOT' });
        expect(error.message).toContain(sentence);
      }
      expect(await readdir(folder)).toEqual([]);
    });
});

function cyclic(): object {
  const item: { self?: object } = {};
  item.self = item;
  return item;
}

it('saves an object that is part of the state twice', async () => {
  const shared = { a: [1] };
  await onRanks(1, (group) => saveSnapshot(file, { x: shared, y: [shared, shared] }, group));
  const [loaded] = await onRanks(1, (group) => loadSnapshot(file, group));
  expect(loaded).toMatchObject({ value: { x: shared, y: [shared, shared] } });
});

it('does not save as something else what it cannot save', async () => {
  const states: readonly (readonly [unknown, string])[] = [
    [new Map([[1, 2]]), 'state.value: expected JSON values, bigints, typed arrays or tensors, got Map'],
    [new Set([1]), 'got Set'],
    [new Date(0), 'got Date'],
    [new ArrayBuffer(8), 'got ArrayBuffer'],
    [Promise.resolve(1), 'got Promise'],
    [{ $array: 1 }, 'a member $array, which means something else in a snapshot'],
    [{ $perRank: [] }, 'a member $perRank'],
    [[undefined], 'state.value[0]'],
    [
      cyclic(),
      'state.value.self: expected JSON values, bigints, typed arrays or tensors, got an object that contains itself',
    ],
  ];
  for (const [value, sentence] of states) {
    const [error] = reasons(await onRanks(1, (group) => saveSnapshot(file, { value }, group)));
    expect(error!.message).toContain(sentence);
  }
});
