// Feeds the launchers' coordinator with messages: valid ones in any order, valid ones with altered values, and random
// text. Every byte derives from a seed.

import { Coordinator, type Decider } from '../../src/rendezvous/coordinator.ts';
import { AdmittingCoordinator } from '../../src/rendezvous/elastic/admitting-coordinator.ts';
import { ElasticCoordinator } from '../../src/rendezvous/elastic/elastic-coordinator.ts';
import type { ViewFacts } from '../../src/rendezvous/elastic/view-facts.ts';
import { parseReport, type Report, type Send } from '../../src/rendezvous/messages.ts';

/** Returns a generator of numbers from 0 to 1 that repeats for the same seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const oddities: readonly unknown[] = [
  ...[null, undefined, -1, 0, 1.5, 1e308, '', 'a', [], {}, [[]], true, '9'.repeat(40), { length: -1 }],
  ...[{ kind: 'join' }, { constructor: 1 }, 'SIGTERM', '__proto__', 'toString'],
];

/** Sends `count` messages to a coordinator, replaced when its job has finished. Returns the number of finished jobs. */
export function fuzzCoordinator(
  seed: number,
  count: number,
  makeNew: () => Decider = newCoordinator,
): number {
  const random = randomOf(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const pick = <T>(items: readonly T[]): T => items[below(items.length)]!;
  const odd = <T>(value: T): T => (random() < 0.03 ? (pick(oddities) as T) : value);
  const report = (): Report => {
    const id = pick(['a', 'b', 'c', 'd']);
    const failedNs = pick([null, `${below(1e9)}`]);
    const error = { name: 'E', message: 'm', stack: '', fields: {}, cause: null };
    const outcome = () => ({
      ...{ rank: odd(below(4)), host: odd('h'), pid: odd(below(1e5)), exitCode: odd(below(3)) },
      ...{ signal: odd(null), failedNs: odd(failedNs), tail: odd(['x']), logFile: odd(null) },
      lastWords: odd(pick([null, { timeNs: odd('5'), error: odd(error) }])),
    });
    const member = {
      ...{ id: odd(id), host: odd('h'), nproc: odd(below(3)) },
      nodeRank: odd(pick([null, 0, 1])),
    };
    return pick<Report>([
      { kind: 'clock', id: odd(id) },
      { kind: 'join', member: odd(member) },
      { kind: 'failing', id: odd(id), round: odd(below(3)), isSecondary: odd(random() < 0.5) },
      { kind: 'ended', id: odd(id), round: odd(below(3)), outcomes: odd([outcome(), outcome()]) },
      {
        ...{ kind: 'slot-ended', id: odd(id), slot: odd(below(4)), incarnation: odd(below(3)) },
        ...{ outcome: odd(outcome()), step: odd(pick([null, below(5)])) },
      },
      { kind: 'leaving', id: odd(id), signal: odd('SIGTERM'), atNs: odd('7') },
      { kind: 'bye', id: odd(id) },
    ]);
  };
  const message = () => {
    const text = JSON.stringify(odd(report())) ?? '';
    const luck = random();
    if (luck < 0.85) return text;
    if (luck < 0.95) return text.slice(0, below(text.length));
    return String.fromCharCode(...Array.from({ length: below(50) }, () => below(256)));
  };
  let coordinator = makeNew();
  let finished = 0;
  for (let sent = 0; sent < count; sent++) {
    const parsed = parseReport(message());
    if (parsed) coordinator.handle(parsed, sent);
    if (random() < 0.05) coordinator.lost(pick(['a', 'b', 'c', 'd']), sent);
    if (random() < 0.05) coordinator.tick(sent);
    if (!coordinator.isFinished) continue;
    finished++;
    coordinator = makeNew();
  }
  return finished;
}

function newCoordinator(): Decider {
  const times = { joinTimeoutMs: 1e9, lastCallMs: 0, settle: { causeMs: 0, secondaryMs: 0 } };
  const nodes = { self: 'a', minNodes: 1, maxNodes: 3, maxRestarts: 2 };
  return new Coordinator({ ...nodes, ...times }, 0, () => {});
}

/** Makes a coordinator of an elastic job whose first view, of all processes, has been written. */
export function newElasticCoordinator(): Decider {
  const times = { joinTimeoutMs: 50, lastCallMs: 0, settle: { causeMs: 0, secondaryMs: 0 } };
  const nodes = { self: 'a', minNodes: 1, maxNodes: 3, maxRestarts: 2, minRanks: 1, maxRanks: 5 };
  const coordinator = new ElasticCoordinator({ ...nodes, ...times }, 0, () => {});
  coordinator.viewed(firstView(0), 0);
  return coordinator;
}

/** Makes a coordinator of an elastic job whose store has moved, with four processes of other launchers. */
export function newAdmittingCoordinator(send: Send): Decider {
  return new AdmittingCoordinator(6, firstView(1), send);
}

function firstView(epoch: number): ViewFacts {
  const members = [0, 1, 2, 3].map((slot) => `${slot}.0`);
  const facts = { members, joined: members, lost: [], left: [], canMove: false, standbys: [] };
  return { number: 0, epoch, ...facts, finalSteps: 0, ended: null };
}
