// Which hosts get slots in an elastic job whose store has moved, on a simulated clock.
import { beforeEach, expect, test } from 'vitest';
import { AdmittingCoordinator } from '../../../src/rendezvous/elastic/admitting-coordinator.ts';
import type { ViewFacts } from '../../../src/rendezvous/elastic/view-facts.ts';
import type { Order } from '../../../src/rendezvous/messages.ts';

let nowMs: number;
let orders: (readonly [string, Order])[];
let coordinator: AdmittingCoordinator;
let number: number;

const viewOf = (members: readonly string[], more: Partial<ViewFacts> = {}): ViewFacts => ({
  ...{ number: ++number, epoch: 1, members, joined: [], lost: [], left: [], standbys: ['b:1', 'c:1'] },
  ...{ canMove: false, finalSteps: 0, ended: null, ...more },
});

/** Begins with the processes of two other launchers. */
function begin(maxRanks: number, members = ['1.0', '2.0'], more: Partial<ViewFacts> = {}): void {
  [nowMs, orders, number] = [1_000_000, [], 6];
  coordinator = new AdmittingCoordinator(maxRanks, viewOf(members, more), (to, order) =>
    orders.push([to, order]),
  );
}
beforeEach(() => begin(4));

const join = (id: string, nproc = 1, nodeRank: number | null = null) =>
  coordinator.handle({ kind: 'join', member: { id, host: `host-${id}`, nproc, nodeRank } }, nowMs);
const view = (members: readonly string[], more: Partial<ViewFacts> = {}) =>
  coordinator.viewed(viewOf(members, more), nowMs);

/** Returns the orders since the previous call: "d:4.0 5.0" gives launcher d two slots; others by their kinds. */
function sent(): string[] {
  const texts = orders.map(([to, order]) => {
    if (order.kind !== 'admitted') return `${to}:${order.kind}`;
    return `${to}:${order.slots.map(({ slot, incarnation }) => `${slot}.${incarnation}`).join(' ')}`;
  });
  orders = [];
  return texts;
}

test('a host gets as many slots as there is room for, above those of the stores before', () => {
  join('d', 3);
  expect(orders).toEqual([
    [
      'd',
      {
        kind: 'admitted',
        slots: [4, 5].map((slot, localRank) => ({
          ...{ kind: 'slot', slot, incarnation: 0, localRank, localWorldSize: 2, worldSize: 6 },
          ...{ groupRank: 2, groupWorldSize: 3, why: null },
        })),
      },
    ],
  ]);
});

test('slots lie above all members also if their number is not limited', () => {
  begin(Number.POSITIVE_INFINITY, ['1.0', '2000.0', 'e6a1b7c8-0000-4000-8000-000000000000']);
  join('d');
  expect(sent()).toEqual(['d:2001.0']);
  begin(Number.POSITIVE_INFINITY, ['1.0'], { epoch: 2 });
  join('d');
  expect(sent()).toEqual(['d:2000.0']);
});

test('a host without a slot waits for one, and gets it when a rank has left', () => {
  begin(2);
  join('d');
  expect(sent()).toEqual(['d:wait']);
  view(['1.0', '2.0'], { joined: ['2.0'] });
  expect(sent()).toEqual([]);
  view(['1.0'], { left: ['2.0'] });
  expect(sent()).toEqual(['d:3.0']);
});

test('a lost rank keeps its slot for a minute if its launcher reports the end, since it may start it again', () => {
  begin(2);
  join('d');
  expect(coordinator.deadlineMs).toBe(Number.POSITIVE_INFINITY);
  view(['1.0'], { lost: ['2.0'] });
  expect(sent()).toEqual(['d:wait']);
  nowMs += 19_000;
  coordinator.ended('2.0', nowMs);
  nowMs += 30_000;
  coordinator.tick(nowMs);
  view(['1.0', '2.1'], { joined: ['2.1'] });
  coordinator.ended('2.0', nowMs); // a second time, when the slot has a process again
  expect(coordinator.deadlineMs).toBe(Number.POSITIVE_INFINITY);
  view(['1.0'], { lost: ['2.1'] });
  coordinator.ended('2.1', nowMs);
  view(['1.0', '0.0']); // a later view does not make the wait shorter
  nowMs += 59_000;
  coordinator.tick(nowMs);
  expect(sent()).toEqual([]);
  expect(coordinator.deadlineMs).toBe(nowMs + 1_000);
  nowMs += 1_000;
  coordinator.tick(nowMs);
  expect(sent()).toEqual([]); // slot 0 has its place
  view(['1.0'], { left: ['0.0'] });
  expect(sent()).toEqual(['d:3.0']);
});

test('a lost rank keeps its slot for 20 s only if its launcher is silent, since it is lost with its host', () => {
  begin(2);
  join('d');
  view(['1.0'], { lost: ['2.0'] });
  coordinator.ended('1.0', nowMs); // of a process that is in the view: too early
  expect(coordinator.deadlineMs).toBe(nowMs + 20_000);
  nowMs += 19_000;
  coordinator.tick(nowMs);
  expect(sent()).toEqual(['d:wait']);
  nowMs += 1_000;
  coordinator.tick(nowMs);
  expect(sent()).toEqual(['d:3.0']);
  expect(coordinator.deadlineMs).toBe(Number.POSITIVE_INFINITY);
});

test('the slots of a launcher that is gone are given to the next one, as other processes', () => {
  join('d', 2);
  view(['1.0', '2.0', '4.0', '5.0']);
  join('e', 2);
  expect(sent()).toEqual(['d:4.0 5.0', 'e:wait']);
  coordinator.lost('d', nowMs); // its ranks are still in the view
  expect(sent()).toEqual([]);
  view(['1.0', '2.0'], { lost: ['4.0', '5.0'] });
  nowMs += 60_000;
  coordinator.tick(nowMs);
  expect(sent()).toEqual(['e:4.1000 5.1000']);
  coordinator.handle({ kind: 'bye', id: 'e' }, nowMs);
  join('f');
  expect(sent()).toEqual(['f:4.2000']);
});

test('hosts that cannot take part are told so', () => {
  join('d', 1, 3);
  join('e', 1, 3);
  join('d', 1, 3); // the same message again
  expect(sent()).toEqual(['d:4.0', 'e:finish']);
  view(['1.0'], { ended: 'too few' });
  join('f');
  expect(sent()).toEqual(['f:finish']);
});

test('a host that waits is told of the end, and one that is stopped meanwhile ends', () => {
  begin(2);
  join('d');
  join('e');
  coordinator.handle({ kind: 'leaving', id: 'e', signal: 'SIGTERM', atNs: '1' }, nowMs);
  coordinator.handle({ kind: 'leaving', id: 'unknown', signal: 'SIGTERM', atNs: '1' }, nowMs);
  expect(sent()).toEqual(['d:wait', 'e:wait', 'e:finish']);
  const outcome = { exitCode: 0, text: null, blamed: null };
  coordinator.finish(outcome);
  expect(orders).toEqual([['d', { kind: 'finish', outcome }]]);
  expect(coordinator.isFinished).toBe(true);
  sent();
  join('f');
  expect(sent()).toEqual(['f:finish']);
});
