// Moves the shards of ZeRO to other ranks. Ranks train on equal gradients, so that each step has the bits of a single
// optimizer, whatever rank updates a parameter.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Group, loopbackGroups } from '@ringwise/collectives';
import { fromHost, scope } from '@ringwise/tensor';
import { parameter } from '@ringwise/tensor/nn';
import { AdamW, StepLR } from '@ringwise/tensor/optim';
import { expect, it } from 'vitest';
import { type ZeroOptions, ZeroRedundancyOptimizer } from '../../../src/index.ts';
import { assignmentOf, lostOf, movesOf } from '../../../src/zero/assignment.ts';

const sizes = [7, 3, 5, 1, 4, 2];
const make = (params: ReturnType<typeof paramsOf>) => new AdamW(params, { lr: 0.1 });
const paramsOf = () =>
  sizes.map((size, i) => parameter(fromHost(Float32Array.from({ length: size }, (_, k) => Math.sin(i + k)))));

/** Sets the gradients of a step. */
function setGradients(params: ReturnType<typeof paramsOf>, step: number): void {
  for (const [i, param] of params.entries()) {
    const gradient = Float32Array.from({ length: sizes[i]! }, (_, k) => Math.cos(step + 2 * i + k));
    param.zeroGrad();
    scope(() => param.mul(fromHost(gradient)).sum().backward());
  }
}

const valuesOf = (params: ReturnType<typeof paramsOf>) =>
  params.flatMap((param) => Array.from(param.dataSync() as Float32Array));

function alone(steps: number): number[] {
  const params = paramsOf();
  const optimizer = make(params);
  const schedule = new StepLR(optimizer, { stepSize: 2, gamma: 0.5 });
  for (let step = 0; step < steps; step++) {
    setGradients(params, step);
    optimizer.step();
    schedule.step();
  }
  return valuesOf(params);
}

/** One rank: its parameters, optimizer and schedule. */
class Rank {
  readonly params = paramsOf();
  readonly zero: ZeroRedundancyOptimizer<(typeof this.params)[0], AdamW>;
  readonly #schedule: StepLR;

  constructor(group: Group, options: ZeroOptions = { copies: 2 }) {
    this.zero = new ZeroRedundancyOptimizer(this.params, group, make, options);
    this.#schedule = new StepLR(this.zero.whole, { stepSize: 2, gamma: 0.5 });
  }

  /** Updates, and exchanges unless the exchange is `torn`. */
  async step(step: number, isTorn = false): Promise<void> {
    setGradients(this.params, step);
    this.zero.update();
    if (!isTorn) await this.zero.exchange();
    this.#schedule.step();
  }
}

const solo = () => loopbackGroups(1)[0]!;
/** Runs `body` for each rank at once, as collective calls need it. */
const each = async (ranks: readonly Rank[], body: (rank: Rank, i: number) => Promise<unknown>) =>
  void (await Promise.all(ranks.map(body)));

it('goes on with the bits of one optimizer after losses, also in the middle of an exchange, and after joins', async () => {
  let groups = loopbackGroups(4);
  let ranks = groups.map((group) => new Rank(group));
  await each(ranks, (rank) => rank.step(0));
  await each(ranks, (rank) => rank.step(1));
  for (const lost of [1, 2, 0]) {
    const at = 4 - ranks.length + 2;
    await each(ranks, (rank) => rank.step(at, true)); // no rank has the values of the others
    ranks = ranks.filter((_, i) => i !== lost);
    await Promise.all(groups.map((group) => group.close()));
    groups = loopbackGroups(ranks.length);
    await each(ranks, (rank, i) => rank.zero.rebind(groups[i]!));
    for (const { params } of ranks) expect(valuesOf(params)).toEqual(alone(at + 1));
  }
  expect(ranks).toHaveLength(1);
  const joined = [new Rank(solo()), new Rank(solo())];
  groups = loopbackGroups(3);
  ranks = [joined[0]!, ...ranks, joined[1]!];
  // An elastic job gives the values and the options; the state comes by rebind().
  for (const rank of joined)
    for (const [i, param] of rank.params.entries())
      (param.dataSync() as Float32Array).set(ranks[1]!.params[i]!.dataSync() as Float32Array);
  const [{ params: _, ...options }] = ranks[1]!.zero.whole.stateDict().groups as [{ params: unknown }];
  for (const rank of joined) Object.assign(rank.zero.whole.groups[0]!, options);
  await each(ranks, (rank, i) => rank.zero.rebind(groups[i]!, { joined: [0, 2] }));
  await each(ranks, async (rank) => {
    setGradients(rank.params, 5);
    rank.zero.update();
    await rank.zero.exchange();
    expect(valuesOf(rank.params)).toEqual(alone(6));
    await rank.zero.consolidateStateDict(1);
  });
  expect(ranks[1]!.zero.stateDict().steps).toEqual(sizes.map(() => 6));
  await Promise.all(groups.map((group) => group.close()));
});

/** The death of a rank in call number `at` of those that move state; `calls` counts them. */
interface Death {
  at: number;
  calls: number;
}

/** Returns the group, in which this rank dies as `death` says, when the others have done what they can without it. */
function dyingIn(group: Group, death: Death): Group {
  const moving = ['sendObject', 'recvObject', 'allGatherObject', 'broadcast'];
  const die = () => {
    group.abort(new Error('this rank dies'));
    throw new Error('this rank dies');
  };
  return new Proxy(group, {
    get(target, name) {
      const member = Reflect.get(target, name, target) as unknown;
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (moving.includes(String(name)) && ++death.calls === death.at)
          return name === 'broadcast' ? die() : sleep(5).then(die);
        return (member as (...args: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}

it('goes on with the bits of one optimizer if a rank dies between any two messages of a new assignment', async () => {
  let deaths = 0;
  for (let isOver = false; !isOver; ) {
    const death: Death = { at: deaths + 1, calls: 0 };
    let groups = loopbackGroups(5);
    let ranks = groups.map((group) => new Rank(group));
    await each(ranks, (rank) => rank.step(0));
    await each(ranks, (rank) => rank.step(1, true)); // the assignment begins with the exchange that was torn
    ranks = ranks.filter((_, i) => i !== 1);
    await Promise.all(groups.map((group) => group.close()));
    groups = loopbackGroups(4);
    // Another rank still has each of the parameters that the two lost ranks kept.
    const ends = await Promise.allSettled(
      ranks.map((rank, i) => rank.zero.rebind(i === 2 ? dyingIn(groups[i]!, death) : groups[i]!)),
    );
    isOver = death.calls < death.at;
    death.at = 0; // no more
    expect(ends[2]!.status).toBe(isOver ? 'fulfilled' : 'rejected');
    if (!isOver) {
      deaths++;
      ranks = ranks.filter((_, i) => i !== 2);
      await Promise.allSettled(groups.map((group) => group.close()));
      groups = loopbackGroups(3);
      await each(ranks, (rank, i) => rank.zero.rebind(groups[i]!));
    }
    await each(ranks, (rank) => rank.step(2));
    for (const { params } of ranks) expect(valuesOf(params), `death at call ${deaths}`).toEqual(alone(3));
    await Promise.all(groups.map((group) => group.close()));
  }
  expect(deaths).toBeGreaterThan(3);
});

it('keeps the state of ranks that leave together', async () => {
  const groups = loopbackGroups(4);
  const ranks = groups.map((group) => new Rank(group));
  await each(ranks, (rank) => rank.step(0));
  await each(ranks, (rank, i) => rank.zero.rebind(groups[i]!, { leaving: [1, 2] }));
  for (const i of [1, 2]) expect(ranks[i]!.zero.local).toBeNull();
  const rest = [ranks[0]!, ranks[3]!];
  const pair = loopbackGroups(2);
  await each(rest, (rank, i) => rank.zero.rebind(pair[i]!));
  await each(rest, (rank) => rank.step(1));
  for (const { params } of rest) expect(valuesOf(params)).toEqual(alone(2));
  await Promise.all([...groups, ...pair].map((group) => group.close()));
});

it('says that both holders were lost', async () => {
  for (const [copies, left, why] of [
    [2, [0, 3], 'both ranks that kept it were lost together'],
    [1, [0, 1, 2], 'pass copies: 2'],
  ] as const) {
    const ranks = loopbackGroups(4).map((group) => new Rank(group, { copies }));
    await each(ranks, (rank) => rank.step(0));
    const groups = loopbackGroups(left.length);
    for (const end of await Promise.allSettled(left.map((i, at) => ranks[i]!.zero.rebind(groups[at]!)))) {
      expect(end).toMatchObject({ status: 'rejected', reason: { code: 'ERR_DDP_STATE_LOST' } });
      expect(String((end as PromiseRejectedResult).reason)).toContain(why);
      expect(String((end as PromiseRejectedResult).reason)).toContain('Start again from a snapshot');
    }
    await Promise.all(groups.map((group) => group.close()));
  }
});

it('loads the state of any number of ranks', async () => {
  const groups = loopbackGroups(3);
  const ranks = groups.map((group) => new Rank(group));
  await each(ranks, (rank) => rank.step(0));
  await each(ranks, (rank) => rank.zero.consolidateStateDict());
  const state = ranks[0]!.zero.stateDict();
  const pair = loopbackGroups(2);
  const again = pair.map(
    (group) => new ZeroRedundancyOptimizer(ranks[0]!.params, group, make, { copies: 2 }),
  );
  for (const zero of again) {
    zero.loadStateDict(state);
    expect(zero.local!.stateDict().steps.every((count) => count === 1)).toBe(true);
  }
  await Promise.all(again.map((zero) => zero.consolidateStateDict()));
  expect(again[0]!.stateDict().tensors).toEqual(state.tensors);
  await Promise.all([...groups, ...pair].map((group) => group.close()));
});

it('puts copies on other hosts, and moves only what is missing', () => {
  const hosts = [
    [0, 1],
    [2, 3],
  ];
  const { owned, copied } = assignmentOf([4, 4, 4, 4], { size: 4, hosts }, 2);
  expect(owned).toEqual([[0], [1], [2], [3]]);
  expect(copied).toEqual([[3], [2], [0], [1]]);
  expect(movesOf([[0, 3], [1], [2, 0], []], { owned, copied })).toEqual([
    { position: 2, from: 2, to: 1 },
    { position: 3, from: 0, to: 3 },
    { position: 1, from: 1, to: 3 },
  ]);
  expect(lostOf([[0], [2]], 4)).toEqual([1, 3]);
  expect(assignmentOf([4, 4], { size: 1, hosts: [[0]] }, 2)).toEqual({ owned: [[0, 1]], copied: [[]] });
});
