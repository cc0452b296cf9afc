// Tests the coordinator on a simulated clock: reports go in, orders come out.

import { beforeEach, describe, expect, it } from 'vitest';
import { clockOffset } from '../../src/rendezvous/clock-offset.ts';
import { Coordinator, type CoordinatorOptions } from '../../src/rendezvous/coordinator.ts';
import type { Order, SentOutcome } from '../../src/rendezvous/messages.ts';

const defaults: CoordinatorOptions = {
  self: 'a',
  minNodes: 2,
  maxNodes: 4,
  joinTimeoutMs: 60_000,
  lastCallMs: 1_000,
  maxRestarts: 1,
  settle: { causeMs: 500, secondaryMs: 2_000 },
};

let nowMs: number;
let orders: (readonly [string, Order])[];
let coordinator: Coordinator;

function make(options: Partial<CoordinatorOptions> = {}): void {
  nowMs = 1_000_000;
  orders = [];
  coordinator = new Coordinator({ ...defaults, ...options }, nowMs, (to, order) => orders.push([to, order]));
}
beforeEach(() => make());

const join = (id: string, nproc = 1, nodeRank: number | null = null) =>
  coordinator.handle({ kind: 'join', member: { id, host: `host-${id}`, nproc, nodeRank } }, nowMs);

function wait(ms: number): void {
  nowMs += ms;
  coordinator.tick(nowMs);
}

/** Returns the orders since the previous call, without those that only tell the user something. */
function sent() {
  const seen = orders.filter(([, { kind }]) => kind !== 'wait');
  orders = [];
  return seen;
}

/** Formats start orders: "a:0:1/3#2" starts launcher a as group rank 0, with ranks from 1 of 3, in round 2. */
const starts = () =>
  sent().flatMap(([to, order]) =>
    order.kind === 'start'
      ? [`${to}:${order.groupRank}:${order.firstRank}/${order.worldSize}#${order.round}`]
      : [],
  );
const outcomes = () =>
  sent().flatMap(([to, order]) =>
    order.kind === 'finish' ? [[to, order.outcome.exitCode, order.outcome.text]] : [],
  );

const outcome = (rank: number, failedAtMs: number | null = null, secondary = false): SentOutcome => {
  const failedNs = failedAtMs === null ? null : `${BigInt(Math.round(failedAtMs * 1e6))}`;
  const error = { name: 'Error', message: `of ${rank}`, stack: '', fields: { secondary }, cause: null };
  return {
    rank,
    host: 'h',
    pid: 1,
    exitCode: failedNs ? 1 : 0,
    signal: null,
    failedNs,
    lastWords: failedNs ? { timeNs: failedNs, error } : null,
    tail: [],
    logFile: null,
  };
};
const ended = (id: string, round: number, ...outcomes: SentOutcome[]) =>
  coordinator.handle({ kind: 'ended', id, round, outcomes }, nowMs);

describe('hosts gather', () => {
  it('until the last call is over, if that is later than the deadline of joining', () => {
    make({ joinTimeoutMs: 500, lastCallMs: 2_000 });
    for (const id of ['a', 'b']) join(id);
    const callMs = nowMs + 2_000;
    expect(coordinator.deadlineMs).toBe(callMs);
    wait(1_000);
    expect(coordinator.deadlineMs).toBe(callMs);
    expect(starts()).toEqual([]);
    wait(1_000);
    expect(starts()).toEqual(['a:0:0/2#0', 'b:1:1/2#0']);
  });

  it('until there are as many as there may be', () => {
    for (const id of ['b', 'a', 'c']) join(id, 2);
    expect(starts()).toEqual([]);
    join('d', 1);
    expect(starts()).toEqual(['a:0:0/7#0', 'b:1:2/7#0', 'c:2:4/7#0', 'd:3:6/7#0']);
  });

  it('until the last call is over, when there are enough', () => {
    join('a');
    wait(30_000);
    join('b');
    wait(999);
    expect(starts()).toEqual([]);
    wait(1);
    expect(starts()).toEqual(['a:0:0/2#0', 'b:1:1/2#0']);
  });

  it('anew when one goes during the last call', () => {
    join('a');
    join('b');
    coordinator.lost('b', nowMs);
    wait(1_000);
    expect(starts()).toEqual([]);
    join('c');
    wait(1_000);
    expect(starts()).toEqual(['a:0:0/2#0', 'c:1:1/2#0']);
  });

  it('by their numbers where they have some', () => {
    make({ minNodes: 3, maxNodes: 3 });
    join('c', 1, 2);
    join('b', 2, 1);
    join('a', 1, 0);
    expect(starts()).toEqual(['a:0:0/4#0', 'b:1:1/4#0', 'c:2:3/4#0']);
  });

  it('not for longer than the join timeout', () => {
    join('a');
    wait(60_000);
    expect(outcomes()).toEqual([
      ['a', 1, expect.stringContaining('1 of 2 hosts arrived within 60 s: host-a.')],
    ]);
    join('b');
    expect(outcomes()).toEqual([['b', 1, 'this host came when the job had ended.']]);
  });
});

describe('a job', () => {
  beforeEach(() => {
    make({ minNodes: 1, maxNodes: 3, lastCallMs: 0 });
    join('a', 2);
    wait(1);
    join('b');
    ended('a', 0, outcome(0), outcome(1));
    sent();
  });

  it('starts again with a host that has come, without using a restart', () => {
    join('c');
    expect(sent().map(([to, { kind }]) => [to, kind])).toEqual([
      ['a', 'stop'],
      ['b', 'stop'],
    ]);
    ended('a', 1, outcome(0), outcome(1));
    expect(sent()).toEqual([]);
    ended('b', 1, outcome(2));
    expect(starts()).toEqual(['a:0:0/4#2', 'b:1:2/4#2', 'c:2:3/4#2']);
    ended('a', 2, outcome(0), outcome(1));
    ended('b', 2, outcome(2, nowMs));
    ended('c', 2, outcome(3));
    expect(starts()).toEqual(['a:0:0/4#3', 'b:1:2/4#3', 'c:2:3/4#3']);
  });

  it('gives the others a moment to report their own failure', () => {
    coordinator.handle({ kind: 'failing', id: 'b', round: 1, isSecondary: false }, nowMs);
    wait(499);
    expect(sent()).toEqual([]);
    wait(1);
    expect(sent().map(([to, { kind }]) => [to, kind])).toEqual([
      ['a', 'stop'],
      ['b', 'stop'],
    ]);
  });

  it('waits longer while all failures are secondary', () => {
    coordinator.handle({ kind: 'failing', id: 'b', round: 1, isSecondary: true }, nowMs);
    wait(1_000);
    expect(sent()).toEqual([]);
    coordinator.handle({ kind: 'failing', id: 'a', round: 1, isSecondary: false }, nowMs);
    wait(500);
    expect(sent().map(([, { kind }]) => kind)).toEqual(['stop', 'stop']);
  });

  it('blames no rank for a failure that followed from a stop', () => {
    join('c');
    ended('a', 1, outcome(0, nowMs + 5), outcome(1, nowMs + 5));
    ended('b', 1, outcome(2));
    const [[, first]] = sent().filter(([, { kind }]) => kind === 'start') as [[string, Order]];
    expect(first).toMatchObject({ why: 'more hosts have come.' });
  });

  it('blames the host that was lost and not the ranks that noticed it', () => {
    coordinator.handle({ kind: 'failing', id: 'a', round: 1, isSecondary: true }, nowMs);
    wait(2_000);
    ended('a', 1, outcome(0, nowMs - 2_000, true), outcome(1, nowMs - 1_990, true));
    expect(starts()).toEqual([]);
    coordinator.lost('b', nowMs);
    const [[, again]] = sent().filter(([, { kind }]) => kind === 'start') as [[string, Order]];
    expect(again).toMatchObject({
      worldSize: 2,
      why: expect.stringMatching(/^restart 1 of 1: host host-b with rank 2 was lost/),
    });
  });

  it('tells a host that was given up and comes back', () => {
    coordinator.lost('b', nowMs);
    sent();
    ended('b', 1, outcome(2));
    expect(outcomes()).toEqual([['b', 1, expect.stringContaining('the job goes on without this host')]]);
  });

  it('ends when all ranks have ended well', () => {
    ended('b', 1, outcome(2));
    expect(coordinator.isFinished).toBe(false);
    ended('a', 1, outcome(0), outcome(1));
    expect(outcomes()).toEqual([
      ['a', 0, null],
      ['b', 0, null],
    ]);
    for (const id of ['a', 'b']) coordinator.handle({ kind: 'bye', id }, nowMs);
    expect(coordinator.present).toEqual([]);
  });

  it('starts all again even if some have ended well', () => {
    ended('a', 1, outcome(0), outcome(1));
    ended('b', 1, outcome(2, nowMs));
    expect(starts()).toEqual(['a:0:0/3#2', 'b:1:2/3#2']);
    ended('a', 2, outcome(0), outcome(1));
    ended('b', 2, outcome(2, nowMs));
    expect(outcomes().map(([to, code]) => [to, code])).toEqual([
      ['a', 1],
      ['b', 1],
    ]);
  });
});

describe('clockOffset', () => {
  it('believes the answer that came quickest', () => {
    const sample = (sentNs: bigint, tookNs: bigint, otherNs: bigint) => ({
      sentNs,
      otherNs,
      receivedNs: sentNs + tookNs,
    });
    // The other clock is 1,000,000 ns ahead. The slow answers spend their time in one direction only.
    const samples = [
      sample(0n, 900n, 1_000_900n),
      sample(1000n, 20n, 1_001_010n),
      sample(2000n, 500n, 1_002_000n),
    ];
    expect(clockOffset(samples)).toBe(1_000_000n);
    expect(clockOffset([])).toBe(0n);
  });
});

describe('a launcher that its user stops', () => {
  const leave = (id: string, agoMs: number) =>
    coordinator.handle(
      { kind: 'leaving', id, signal: 'SIGINT', atNs: `${Math.round((nowMs - agoMs) * 1e6)}` },
      nowMs,
    );
  const fails = (agoMs: number) => {
    make({ minNodes: 1, maxNodes: 1 });
    join('a', 2);
    const [earlyMs, lateMs] = [nowMs + 10, nowMs + 20];
    nowMs += 50;
    // The word of the stop is on its way for a while; the ranks are stopped at once.
    leave('a', agoMs);
    ended('a', 0, outcome(0, lateMs), outcome(1, earlyMs));
    return outcomes();
  };

  it('is the cause if its ranks fail after it has stopped them, although the word of that comes later', () => {
    expect(fails(45)).toEqual([['a', 130, 'stopped by SIGINT.']]);
  });

  it('is not the cause if a rank has failed before', () => {
    expect(fails(35)).toEqual([['a', 1, expect.stringContaining('rank 1 of 2 failed')]]);
  });
});
