import { MemoryStore } from '@ringwise/store';
import { expect, it } from 'vitest';
import { coordinate } from '../../src/rendezvous/coordinate.ts';
import { takePart } from '../../src/rendezvous/take-part.ts';

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
