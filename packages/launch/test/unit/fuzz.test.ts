// Sends malformed and unfinished messages between launchers.

import { MemoryStore } from '@ringwise/store';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { coordinate, coordinatorBox } from '../../src/rendezvous/coordinate.ts';
import { inbox, Outbox } from '../../src/rendezvous/mailbox.ts';
import { endedReport, fromSent, parseOrder, parseReport, type Send } from '../../src/rendezvous/messages.ts';
import { parseLastWords, reportError } from '../../src/report/last-words.ts';
import { failureReport, rootCause } from '../../src/report/report.ts';
import { fuzzCoordinator, newAdmittingCoordinator, newElasticCoordinator } from '../support/fuzz.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});
afterEach(() => store.close());

it('the coordinator takes 50,000 messages of any kind in any order', () => {
  expect(fuzzCoordinator(20261121, 50_000)).toBeGreaterThan(100);
});

it('so does the coordinator of an elastic job', () => {
  expect(fuzzCoordinator(20261125, 50_000, newElasticCoordinator)).toBeGreaterThan(100);
});

it('so does the one of a job whose store has moved, which gives no slot to two launchers at a time', () => {
  const given = new Set<string>();
  const send: Send = (_, order) => {
    if (order.kind !== 'admitted') return;
    for (const { slot, incarnation } of order.slots) {
      expect(given).not.toContain(`${slot}.${incarnation}`);
      given.add(`${slot}.${incarnation}`);
    }
  };
  expect(fuzzCoordinator(20261129, 50_000, () => newAdmittingCoordinator(send))).toBe(0);
  expect(given.size).toBeGreaterThan(100);
  expect(new Set([...given].map((id) => id.split('.')[0]))).toEqual(new Set(['6', '7']));
});

it('malformed messages are left out, and the next one is answered', async () => {
  const times = { joinTimeoutMs: 60_000, lastCallMs: 0, settle: { causeMs: 500, secondaryMs: 2_000 } };
  const nodes = { self: 'a', minNodes: 2, maxNodes: 2, maxRestarts: 0 };
  const coordination = coordinate(store, { ...nodes, ...times }, null);
  const outbox = new Outbox(store);
  const wrong = [
    null,
    5,
    'x',
    [],
    {},
    { kind: 'ended', id: 'a', round: 0, outcomes: [{}] },
    { kind: 'toString' },
  ];
  for (const message of wrong) void outbox.post(coordinatorBox, message);
  await store.set(
    `${coordinatorBox}/${(await store.add(`${coordinatorBox}/posted`, 1)) as number}`,
    '{"kind":',
  );
  await outbox.post(coordinatorBox, { kind: 'clock', id: 'b' });
  const answer = await inbox(store, 'launch/to/b', parseOrder, AbortSignal.timeout(20_000)).next();
  expect(answer.value).toMatchObject({ kind: 'time' });
  await coordination.close();
});

it('a number that was taken and never used does not hold up those after it', async () => {
  const read = inbox(store, 'box', (text) => text, AbortSignal.timeout(25_000));
  // Takes number 1 without storing a message, like a poster that was killed between the two steps.
  await store.add('box/posted', 1);
  await new Outbox(store).post('box', 'second');
  expect((await read.next()).value).toBe('"second"');
});

it('a poster that was only slow takes another number', async () => {
  const read = inbox(store, 'box', (text) => text, AbortSignal.timeout(25_000));
  await new Outbox(store).post('box', 'first');
  const { add } = store;
  let reached = () => {};
  let goOn = () => {};
  const slow = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const released = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  // Pauses the poster after it took its number and before it stores the message.
  const hesitant = new Proxy(store, {
    get: (target, name) => {
      if (name !== 'add') return Reflect.get(target, name).bind(target);
      return async (...args: Parameters<typeof add>) => {
        const number = await target.add(...args);
        if (number === 2) {
          reached();
          await released;
        }
        return number;
      };
    },
  });
  const posted = new Outbox(hesitant).post('box', 'slow');
  await slow;
  await new Outbox(store).post('box', 'third');
  expect((await read.next()).value).toBe('"first"');
  expect((await read.next()).value).toBe('"third"');
  goOn();
  await posted;
  expect((await read.next()).value).toBe('"slow"');
});

it('reports are taken as launchers send them', () => {
  const outcome = {
    rank: 0,
    host: 'h',
    pid: 1,
    exitCode: null,
    signal: 'SIGKILL',
    failedNs: '5',
    tail: ['x'],
  };
  const error = { name: 'E', message: 'm', stack: '', fields: {}, cause: null };
  const ended = {
    kind: 'ended',
    id: 'a',
    round: 1,
    outcomes: [{ ...outcome, lastWords: { timeNs: '4', error }, logFile: null }],
  };
  expect(parseReport(JSON.stringify(ended))).toEqual(ended);
  const leaving = { kind: 'leaving', id: 'a', signal: 'SIGINT', atNs: '5' };
  expect(parseReport(JSON.stringify(leaving))).toEqual(leaving);
  for (const wrong of [{ signal: 'SIGNOT' }, { atNs: 5 }])
    expect(parseReport(JSON.stringify({ ...leaving, ...wrong }))).toBe(null);
});

it('a report of many ranks with long errors fits into a store, and keeps the whole root cause', async () => {
  const cause = Object.assign(new Error('lost rank 7'), { code: 'ERR_COLL_PEER_LOST', secondary: true });
  const outcomes = Array.from({ length: 400 }, (_, rank) => {
    const error = new Error(`${rank} ${'x'.repeat(20_000)}`, rank === 7 ? {} : { cause });
    const failedNs = BigInt(1_000 - rank);
    const lastWords = { timeNs: failedNs, error: reportError(error) };
    const ended = { exitCode: 1, signal: null, failedNs, lastWords, tail: ['x'], logFile: null };
    return { rank, host: 'h', pid: 1, ...ended };
  });
  const report = endedReport('a', 0, outcomes, 5n);
  await new Outbox(store).post('box', report);
  const read = inbox(store, 'box', parseReport, AbortSignal.timeout(20_000));
  const got = (await read.next()).value;
  if (got.kind !== 'ended') throw new Error('another report');
  const restored = got.outcomes.map(fromSent);
  expect(restored.map(({ failedNs }) => failedNs)).toEqual(outcomes.map(({ failedNs }) => failedNs! + 5n));
  expect(restored[399]!.lastWords!.error.message).toMatch(/^399 x+$/);
  const root = rootCause(restored)!;
  expect(root).toMatchObject({ rank: 7, tail: ['x'] });
  expect(root.lastWords!.error).toMatchObject({
    message: outcomes[7]!.lastWords.error.message,
    stack: expect.stringContaining('Error: 7'),
  });
  const text = failureReport(restored, 0n, root);
  expect(text.length).toBeLessThan(400 * 400 + 20_000);
});

it('a message that is larger than a store takes is refused, and the next is posted', async () => {
  const outbox = new Outbox(store);
  const tooLarge = outbox.post('box', 'x'.repeat(9 << 20));
  const next = outbox.post('box', 'next');
  await expect(tooLarge).rejects.toMatchObject({ code: 'ERR_STORE_ARGUMENT' });
  await next;
  const read = inbox(store, 'box', (text) => text, AbortSignal.timeout(25_000));
  expect((await read.next()).value).toBe('"next"');
});

it('what others write to the pipe of last words is no error that the coordinator would not take', () => {
  const error = reportError(new Error('x'));
  for (const timeNs of [5, null, '', '0x10', '9'.repeat(30)]) {
    expect(parseLastWords(`${JSON.stringify({ timeNs, error })}\n`)).toBe(null);
    expect(parseLastWords(`${JSON.stringify({ crash: 'SIGSEGV', timeNs, thread: 'node', tid: 7 })}\n`)).toBe(
      null,
    );
  }
  expect(parseLastWords('{"crash":5,"timeNs":"5","thread":"node","tid":7}\n')).toBe(null);
});
