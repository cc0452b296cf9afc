// Tests the coordinator of elastic jobs on a simulated clock: reports and views go in, orders come out.

import { beforeEach, describe, expect, it } from 'vitest';
import {
  ElasticCoordinator,
  type ElasticOptions,
} from '../../../src/rendezvous/elastic/elastic-coordinator.ts';
import type { Order, SentOutcome } from '../../../src/rendezvous/messages.ts';

const defaults: ElasticOptions = {
  self: 'a',
  minNodes: 1,
  maxNodes: 1,
  joinTimeoutMs: 60_000,
  lastCallMs: 1_000,
  maxRestarts: 3,
  settle: { causeMs: 500, secondaryMs: 2_000 },
  minRanks: 1,
  maxRanks: Number.POSITIVE_INFINITY,
};

let nowMs: number;
let orders: (readonly [string, Order])[];
let coordinator: ElasticCoordinator;
let viewNumber: number;

function make(options: Partial<ElasticOptions> = {}): void {
  nowMs = 1_000_000;
  orders = [];
  viewNumber = -1;
  coordinator = new ElasticCoordinator({ ...defaults, ...options }, nowMs, (to, order) =>
    orders.push([to, order]),
  );
}
beforeEach(() => make());

const join = (id: string, nproc = 1, nodeRank: number | null = null) =>
  coordinator.handle({ kind: 'join', member: { id, host: `host-${id}`, nproc, nodeRank } }, nowMs);

function wait(ms: number): void {
  nowMs += ms;
  coordinator.tick(nowMs);
}

/** A view of these processes, after `finalSteps` steps. */
function view(
  members: readonly string[],
  finalSteps = 0,
  more: { lost?: string[]; ended?: string } = {},
): void {
  const { lost = [], ended = null } = more;
  const moves = { epoch: 0, standbys: [], canMove: false };
  const facts = { members, joined: [], lost, left: [], ...moves, finalSteps, ended };
  coordinator.viewed({ number: ++viewNumber, ...facts }, nowMs);
}

interface End {
  readonly exitCode?: number | null;
  readonly signal?: NodeJS.Signals;
  /** Place in the program of the error that ended it. */
  readonly at?: string;
  readonly isSecondary?: boolean;
  /** Code of the error. */
  readonly code?: string;
  readonly wasStopped?: boolean;
  readonly step?: number;
}

/** Reports that the process `id`, such as "1.0", of a host has ended. */
function ended(host: string, id: string, end: End = {}): void {
  const { signal = null, at, isSecondary = false, code, wasStopped = false, step = null } = end;
  const exitCode = end.exitCode === undefined ? (signal || at ? (signal ? null : 1) : 0) : end.exitCode;
  const [slot, incarnation] = id.split('.').map(Number) as [number, number];
  const failedNs = exitCode === 0 || wasStopped ? null : `${BigInt(Math.round(nowMs * 1e6))}`;
  const fields = { ...(isSecondary && { secondary: true }), ...(code !== undefined && { code }) };
  const stack = `Error: broken\n    at step (/home/me/${at}:7:3)`;
  const error = { name: 'Error', message: 'broken', stack, fields, cause: null };
  const outcome: SentOutcome = {
    ...{
      rank: slot,
      host: `host-${host}`,
      pid: 100 + slot,
      exitCode,
      signal,
      failedNs,
      tail: [],
      logFile: null,
    },
    lastWords: at ? { timeNs: failedNs ?? '0', error } : null,
  };
  coordinator.handle({ kind: 'slot-ended', id: host, slot, incarnation, outcome, step }, nowMs);
}

/** Returns the orders since the previous call, without those that only tell the user something. */
function sent(): (readonly [string, Order])[] {
  const seen = orders.filter(([, { kind }]) => kind !== 'wait');
  orders = [];
  return seen;
}

/** Formats start orders: "a:1.0/4" starts slot 1 on launcher a for the first time, among 4 slots. */
const starts = () =>
  sent().flatMap(([to, order]) =>
    order.kind === 'slot' ? [`${to}:${order.slot}.${order.incarnation}/${order.worldSize}`] : [],
  );
const kinds = () => sent().map(([to, { kind }]) => `${to}:${kind}`);
const outcomes = () =>
  sent().flatMap(([to, order]) =>
    order.kind === 'finish' ? [[to, order.outcome.exitCode, order.outcome.text]] : [],
  );

describe('on one host', () => {
  beforeEach(() => {
    join('a', 3);
    expect(starts()).toEqual(['a:0.0/3', 'a:1.0/3', 'a:2.0/3']);
  });

  it('the end of a rank stops no other: its slot is started again', () => {
    view(['0.0', '1.0', '2.0']);
    ended('a', '1.0', { signal: 'SIGKILL' });
    expect(coordinator.deadlineMs).toBe(nowMs);
    wait(0);
    const [[to, order]] = sent() as [[string, Order]];
    expect(to).toBe('a');
    expect(order).toEqual({
      ...{ kind: 'slot', slot: 1, incarnation: 1, localRank: 1, localWorldSize: 3, worldSize: 3 },
      ...{ groupRank: 0, groupWorldSize: 1 },
      why: 'starting rank 1 again after SIGKILL, restart 1 of 3; the others go on.',
    });
  });

  it('a process that came when the training was over stops no member that works on after its last step', () => {
    view(['0.0', '1.0', '2.0']);
    ended('a', '1.0', { signal: 'SIGKILL' });
    wait(0);
    view(['0.0', '2.0'], 9, { lost: ['1.0'] });
    sent();
    view(['1.1'], 9, { ended: 'the training is over' });
    ended('a', '1.1', { at: 'train.ts', code: 'ERR_ELASTIC_OVER' });
    ended('a', '0.0');
    wait(600_000);
    expect(sent()).toEqual([]);
    ended('a', '2.0');
    expect(outcomes()).toEqual([['a', 0, null]]);
  });

  it('a member that fails after its last step ends the job with its failure, although the others end with 0', () => {
    for (const isStartedAgain of [false, true]) {
      make();
      join('a', 3);
      view(['0.0', '1.0', '2.0'], 4);
      ended('a', '0.0', { at: 'save.ts' });
      if (isStartedAgain) {
        wait(0);
        view(['0.1'], 9, { ended: 'the training is over' });
        ended('a', '0.1');
      }
      ended('a', '1.0');
      sent();
      ended('a', '2.0');
      expect(sent()).toEqual([]);
      wait(1_000);
      const finished = outcomes().filter(([to]) => to === 'a') as [string, number, string][];
      expect(finished.map(([, exitCode]) => exitCode)).toEqual([1]);
      expect(finished[0]![2]).toMatch(/^rank 0 of 3 failed \(exit code 1\) .*save\.ts/s);
      expect(finished[0]![2]).toContain('The training was over then');
    }
  });

  it('a process that was lost while the others trained on is not waited for', () => {
    view(['0.0', '1.0', '2.0'], 4);
    view(['0.0', '2.0'], 4, { lost: ['1.0'] });
    ended('a', '0.0');
    ended('a', '2.0');
    expect(outcomes()).toEqual([['a', 0, null]]);
  });

  it('one that failed before it does not, if the view of the others comes later than their end', () => {
    view(['0.0', '1.0', '2.0'], 4);
    ended('a', '0.0', { at: 'train.ts' });
    ended('a', '1.0');
    ended('a', '2.0');
    expect(outcomes()).toEqual([]);
    wait(10);
    view(['1.0', '2.0'], 4, { lost: ['0.0'] });
    expect(outcomes()).toEqual([['a', 0, null]]);
  });

  it('waits before it starts a slot whose processes do not live long', () => {
    make({ maxRestarts: 100 });
    join('a', 2);
    view(['0.0', '1.0']);
    const waits: number[] = [];
    for (let incarnation = 0; incarnation < 8; incarnation++) {
      sent();
      ended('a', `1.${incarnation}`, { signal: 'SIGKILL' });
      waits.push(coordinator.deadlineMs - nowMs);
      wait(coordinator.deadlineMs - nowMs);
      expect(starts()).toEqual([`a:1.${incarnation + 1}/2`]);
    }
    expect(waits).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    wait(5_000);
    ended('a', '1.8', { signal: 'SIGKILL' });
    expect(coordinator.deadlineMs).toBe(nowMs);
  });

  it('ends with the root cause when a slot has used up its restarts', () => {
    make({ maxRestarts: 1 });
    join('a', 2);
    view(['0.0', '1.0']);
    ended('a', '1.0', { at: 'train.ts' });
    wait(0);
    sent();
    ended('a', '1.1', { at: 'other.ts' });
    expect(kinds()).toEqual(['a:stop']);
    ended('a', '0.0', { signal: 'SIGTERM', wasStopped: true });
    const [[, exitCode, text]] = outcomes() as [[string, number, string]];
    expect(exitCode).toBe(1);
    expect(text).toMatch(
      /^rank 1 of 2 failed \(exit code 1\) after .* rank 0 was stopped\.\n {2}Error: broken .*other\.ts:7/,
    );
    expect(text).toContain('this rank has been started again once');
  });

  it('forgets the restarts of a slot whose process has lived for ten minutes', () => {
    make({ maxRestarts: 1 });
    join('a', 2);
    view(['0.0', '1.0']);
    for (const incarnation of [0, 1, 2]) {
      wait(600_000);
      ended('a', `1.${incarnation}`, { signal: 'SIGKILL' });
      wait(0);
      expect(starts()).toContain(`a:1.${incarnation + 1}/2`);
    }
    wait(599_999);
    ended('a', '1.3', { signal: 'SIGKILL' });
    expect(kinds()).toContain('a:stop');
  });

  it('ends when the same line fails three times at the same step, on whichever rank', () => {
    view(['0.0', '1.0', '2.0']);
    ended('a', '1.0', { at: 'train.ts', step: 7 });
    view(['0.0', '2.0'], 8);
    ended('a', '2.0', { at: 'train.ts', step: 8 });
    wait(0);
    ended('a', '1.1', { at: 'train.ts', step: 8 });
    expect(kinds()).not.toContain('a:stop');
    wait(1_000);
    ended('a', '2.1', { at: 'train.ts', step: 8 });
    expect(kinds()).toContain('a:stop');
    ended('a', '0.0', { signal: 'SIGTERM', wasStopped: true });
    ended('a', '1.2', { signal: 'SIGTERM', wasStopped: true });
    expect(outcomes()).toEqual([['a', 1, expect.stringContaining('has failed 3 times at step 8')]]);
  });

  it('does not take kills, and failures that followed from others, for a failure of the program', () => {
    make({ maxRestarts: 100 });
    join('a', 2);
    view(['0.0', '1.0']);
    for (let incarnation = 0; incarnation < 6; incarnation++) {
      ended(
        'a',
        `1.${incarnation}`,
        incarnation % 2 ? { signal: 'SIGKILL' } : { at: 'train.ts', isSecondary: true },
      );
      wait(30_000);
    }
    expect(kinds()).not.toContain('a:stop');
  });

  it('ends as any job if a rank fails before the first view, and finds the root cause', () => {
    ended('a', '1.0', { at: 'train.ts', isSecondary: true });
    wait(400);
    ended('a', '2.0', { at: 'model.ts' });
    expect(kinds()).toEqual([]);
    wait(1_600);
    expect(kinds()).toEqual(['a:stop']);
    ended('a', '0.0', { signal: 'SIGTERM', wasStopped: true });
    expect(outcomes()).toEqual([['a', 1, expect.stringMatching(/^rank 2 of 3 failed .*model\.ts:7/s)]]);
  });

  it('ends when no rank is left that has the state of the training', () => {
    view(['0.0', '1.0', '2.0']);
    view(['0.0'], 5, { lost: ['1.0', '2.0'] });
    ended('a', '1.0', { signal: 'SIGKILL' });
    wait(0);
    expect(starts()).toEqual(['a:1.1/3']);
    ended('a', '0.0', { signal: 'SIGSEGV' });
    expect(kinds()).toEqual(['a:stop']);
    for (const id of ['1.1', '2.0']) ended('a', id, { signal: 'SIGTERM', wasStopped: true });
    expect(outcomes()).toEqual([
      ['a', 139, expect.stringContaining('no rank with the state of the training')],
    ]);
  });

  it('then blames the rank whose failure the others followed, although it was started again', () => {
    view(['0.0', '1.0', '2.0']);
    ended('a', '1.0', { at: 'model.ts' });
    wait(5);
    ended('a', '0.0', { at: 'train.ts', isSecondary: true });
    wait(5);
    expect(starts()).toEqual(['a:1.1/3', 'a:0.1/3']);
    ended('a', '2.0', { at: 'train.ts', isSecondary: true });
    for (const id of ['0.1', '1.1']) ended('a', id, { signal: 'SIGTERM', wasStopped: true });
    expect(outcomes()).toEqual([
      ['a', 1, expect.stringMatching(/^rank 1 of 3 failed .*model\.ts:7.*no rank with the state/s)],
    ]);
  });

  it('ends with the reason of the ranks when their last view has one', () => {
    view(['0.0', '1.0', '2.0']);
    ended('a', '1.0', { at: 'data.ts' });
    view(['0.0', '2.0'], 4, { lost: ['1.0'], ended: 'slot 1 was lost 3 times at step 4' });
    nowMs += 10;
    ended('a', '0.0', { at: 'elastic.ts' });
    expect(kinds()).toEqual(['a:stop']);
    ended('a', '2.0', { at: 'elastic.ts' });
    expect(outcomes()).toEqual([
      ['a', 1, expect.stringMatching(/^rank 1 .*data\.ts.*slot 1 was lost 3 times/s)],
    ]);
  });

  it('ends well when all living ranks have ended with 0', () => {
    view(['0.0', '1.0', '2.0']);
    ended('a', '1.0');
    ended('a', '0.0');
    expect(sent()).toEqual([]);
    ended('a', '2.0');
    expect(outcomes()).toEqual([['a', 0, null]]);
    expect(coordinator.isFinished).toBe(true);
  });

  it('ends well without the first view, too', () => {
    for (const id of ['0.0', '1.0', '2.0']) ended('a', id);
    expect(outcomes()).toEqual([['a', 0, null]]);
  });

  it('does not start a slot again for which the others have nothing left to do', () => {
    view(['0.0', '1.0', '2.0']);
    view(['0.0', '1.0'], 9, { lost: ['2.0'] });
    ended('a', '2.0', { signal: 'SIGKILL' });
    wait(0);
    expect(starts()).toEqual(['a:2.1/3']);
    ended('a', '0.0');
    ended('a', '1.0');
    expect(outcomes()).toEqual([['a', 0, null]]);
  });

  it('goes on without a rank that has left, and starts it no more', () => {
    view(['0.0', '1.0', '2.0']);
    ended('a', '2.0');
    view(['0.0', '1.0'], 3);
    ended('a', '1.0', { signal: 'SIGKILL' });
    wait(0);
    expect(starts()).toEqual(['a:1.1/3']);
  });

  it('kills a process that the others have left out, if it does not end by itself', () => {
    view(['0.0', '1.0', '2.0']);
    view(['0.0', '1.0'], 3, { lost: ['2.0'] });
    wait(4_999);
    expect(sent()).toEqual([]);
    wait(1);
    expect(sent()).toEqual([['a', { kind: 'end-slot', slot: 2, incarnation: 0 }]]);
    ended('a', '2.0', { signal: 'SIGKILL', wasStopped: true });
    wait(0);
    expect(starts()).toEqual(['a:2.1/3']);
    expect(coordinator.deadlineMs).toBe(Number.POSITIVE_INFINITY);
  });

  it('ignores reports about processes that it does not have', () => {
    view(['0.0', '1.0', '2.0']);
    ended('a', '1.7', { signal: 'SIGKILL' });
    ended('a', '9.0', { signal: 'SIGKILL' });
    ended('b', '1.0', { signal: 'SIGKILL' });
    expect(kinds()).toEqual(['b:finish']);
  });

  it('stops all for the user', () => {
    view(['0.0', '1.0', '2.0']);
    coordinator.handle({ kind: 'leaving', id: 'a', signal: 'SIGINT', atNs: '0' }, nowMs);
    expect(sent()).toEqual([]);
    for (const id of ['0.0', '1.0']) ended('a', id, { signal: 'SIGINT', wasStopped: true });
    expect(sent()).toEqual([]);
    ended('a', '2.0');
    expect(outcomes()).toEqual([['a', 130, 'stopped by SIGINT.']]);
  });
});

describe('on several hosts', () => {
  beforeEach(() => {
    make({ minNodes: 2, maxNodes: 3, minRanks: 2 });
    join('a', 2);
    expect(starts()).toEqual([]);
    join('b', 2);
    expect(starts()).toEqual(['a:0.0/4', 'a:1.0/4', 'b:2.0/4', 'b:3.0/4']);
    view(['0.0', '1.0', '2.0', '3.0']);
  });

  it('a host that comes late adds slots and stops no rank', () => {
    join('c', 2);
    expect(starts()).toEqual(['c:4.0/6', 'c:5.0/6']);
  });

  it('a lost host costs its slots only, and the next host takes their numbers', () => {
    expect(coordinator.lost('b', nowMs)).toEqual(['2.0', '3.0']);
    expect(sent()).toEqual([]);
    join('c', 3);
    expect(starts()).toEqual(['c:2.1/5', 'c:3.1/5', 'c:4.0/5']);
  });

  it('a host of which there is no sign of life is told that the job goes on without it', () => {
    coordinator.lost('b', nowMs);
    ended('b', '2.0', { signal: 'SIGKILL' });
    expect(outcomes()).toEqual([['b', 1, expect.stringContaining('the job goes on without this host')]]);
  });

  it('a host that is told to stop leaves when its ranks have, and the others go on', () => {
    coordinator.handle({ kind: 'leaving', id: 'b', signal: 'SIGTERM', atNs: '0' }, nowMs);
    ended('b', '2.0');
    expect(sent()).toEqual([]);
    ended('b', '3.0', { signal: 'SIGKILL', wasStopped: true });
    expect(outcomes()).toEqual([['b', 143, 'stopped by SIGTERM.']]);
    ended('a', '1.0', { signal: 'SIGKILL' });
    wait(0);
    expect(starts()).toEqual(['a:1.1/4']);
  });

  it('with fewer ranks than the minimum it waits for a host, and ends if none comes', () => {
    make({ minNodes: 2, maxNodes: 3, minRanks: 3 });
    for (const id of ['a', 'b']) join(id, 2);
    view(['0.0', '1.0', '2.0', '3.0']);
    sent();
    coordinator.lost('b', nowMs);
    expect(orders).toEqual([
      ['a', { kind: 'wait', text: expect.stringContaining('host host-b with ranks 2 to 3 was lost') }],
    ]);
    wait(30_000);
    join('c', 1);
    expect(starts()).toEqual(['c:2.1/4']);
    wait(60_000);
    expect(sent()).toEqual([]);
    coordinator.lost('c', nowMs);
    wait(60_000);
    expect(kinds()).toEqual(['a:stop']);
    for (const id of ['0.0', '1.0']) ended('a', id, { signal: 'SIGTERM', wasStopped: true });
    expect(outcomes()).toEqual([['a', 1, expect.stringContaining('host host-c with rank 2 was lost')]]);
  });

  it('ends when the lost host had all ranks that have the state of the training', () => {
    view(['2.0', '3.0'], 5, { lost: ['0.0', '1.0'] });
    coordinator.lost('b', nowMs);
    expect(kinds()).toEqual(['a:stop']);
  });

  it('ends when the host with the store is told to stop: the others leave, too', () => {
    coordinator.handle({ kind: 'leaving', id: 'a', signal: 'SIGTERM', atNs: '0' }, nowMs);
    expect(kinds()).toEqual(['b:stop']);
    for (const id of ['0.0', '1.0']) ended('a', id);
    ended('b', '2.0');
    expect(sent()).toEqual([]);
    ended('b', '3.0');
    expect(outcomes()).toEqual([
      ['a', 143, 'stopped by SIGTERM.'],
      ['b', 143, 'stopped by SIGTERM.'],
    ]);
  });

  it('keeps a host without a slot as a reserve', () => {
    make({ minNodes: 2, maxNodes: 3, maxRanks: 3 });
    for (const id of ['a', 'b']) join(id, 2);
    expect(starts()).toEqual(['a:0.0/3', 'a:1.0/3', 'b:2.0/3']);
    view(['0.0', '1.0', '2.0']);
    join('c', 2);
    expect(orders).toEqual([['c', { kind: 'wait', text: expect.stringContaining('this one waits') }]]);
    coordinator.lost('b', nowMs);
    expect(starts()).toEqual(['c:2.1/3']);
  });

  it('refuses a host with the number of another', () => {
    make({ minNodes: 2, maxNodes: 2 });
    join('a', 1, 0);
    join('b', 1, 0);
    expect(outcomes()).toEqual([['b', 1, expect.stringContaining('--node-rank 0 was given twice')]]);
  });

  it('gathers not for longer than the join timeout', () => {
    make({ minNodes: 2, maxNodes: 3 });
    join('a');
    wait(60_000);
    expect(outcomes()).toEqual([
      ['a', 1, expect.stringContaining('1 of 2 hosts arrived within 60 s: host-a.')],
    ]);
    join('b');
    expect(outcomes()).toEqual([['b', 1, 'this host came when the job had ended.']]);
  });
});
