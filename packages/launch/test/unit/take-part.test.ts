import { MemoryStore } from '@ringwise/store';
import { expect, it } from 'vitest';
import { watchRanks } from '../../src/agent/agent.ts';
import type { RankOutcome } from '../../src/agent/rank-process.ts';
import { coordinate } from '../../src/rendezvous/coordinate.ts';
import { takePart } from '../../src/rendezvous/take-part.ts';

/** Returns a promise and the function that resolves it. */
function later<T>() {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

it('a launcher that is stopped while it measures the clock does not join', async () => {
  const store = new MemoryStore();
  const times = { joinTimeoutMs: 60_000, lastCallMs: 0, settle: { causeMs: 500, secondaryMs: 2_000 } };
  const coordination = coordinate(
    store,
    { self: 'a', minNodes: 2, maxNodes: 2, maxRestarts: 0, ...times },
    { everyMs: 1_000, attempts: 60 },
  );
  const part = takePart({
    member: { id: 'b', host: 'b', nproc: 1, nodeRank: null },
    store,
    where: 'here',
    keepAlive: { everyMs: 1_000, attempts: 60 },
    say: () => {},
    start: () => Promise.reject(new Error('not ordered')),
  });
  part.interrupt('SIGINT');
  expect(await part.outcome).toEqual({ exitCode: 130, text: 'stopped by SIGINT.', blamed: 'b' });
  await coordination.close();
  await store.close();
});

it('passes on both signals that arrive while the ranks are being started, of which the second kills them', async () => {
  const store = new MemoryStore();
  const times = { joinTimeoutMs: 60_000, lastCallMs: 0, settle: { causeMs: 500, secondaryMs: 2_000 } };
  const coordination = coordinate(
    store,
    { self: 'a', minNodes: 1, maxNodes: 1, maxRestarts: 0, ...times },
    null,
  );
  const { promise: ordered, resolve: order } = later<void>();
  const { promise: ready, resolve: finishStart } = later<void>();
  const signals: NodeJS.Signals[] = [];
  const part = takePart({
    member: { id: 'a', host: 'a', nproc: 1, nodeRank: null },
    store,
    where: 'here',
    keepAlive: null,
    say: () => {},
    start: async () => {
      order();
      await ready;
      const { promise: outcome, resolve: end } = later<RankOutcome>();
      const ended = { exitCode: null, failedNs: null, lastWords: null, tail: [], logFile: null };
      const stop = (signal: NodeJS.Signals) => {
        signals.push(signal);
        if (signal === 'SIGKILL') end({ rank: 0, host: 'a', pid: 1, signal, ...ended });
      };
      return watchRanks(() => [{ pid: 1, outcome, stop }], { shutdownTimeoutMs: 60_000 });
    },
  });
  await ordered;
  part.interrupt('SIGINT');
  part.interrupt('SIGINT');
  finishStart();
  expect(await part.outcome).toMatchObject({ exitCode: 130 });
  expect(signals.slice(0, 2)).toEqual(['SIGINT', 'SIGKILL']);
  await coordination.close();
  await store.close();
});
