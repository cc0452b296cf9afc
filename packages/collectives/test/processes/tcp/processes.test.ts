// Tests processes with groups on the tcp backend.
import { values, withRanks } from '@ringwise/testing';
import { expect, it } from 'vitest';

const module = new URL('../../support/host-ranks.ts', import.meta.url);
const env = { RINGWISE_BACKEND: 'tcp' };

it('keeps its event loop turning while it waits in a barrier', async () => {
  const turns = values<number>(await withRanks(2, module, 'idleInBarrier', { env }));
  expect(turns[0]).toBeGreaterThanOrEqual(20);
});

it('stays alive for a pending operation, and for nothing else', async () => {
  expect(values(await withRanks(2, module, 'onlyTheBarrier', { env }))).toEqual(['passed', 'passed']);
});

it('may exit with operations pending, and its peers are told', async () => {
  const [exited, waiting] = await withRanks(2, module, 'exitWhilePending', { args: [7], env });
  expect(exited).toMatchObject({ status: 'exited', exitCode: 7, signal: null });
  expect(waiting!.error).toMatchObject({ code: 'ERR_COLL_PEER_LOST', peers: [0] });
});

it.each([
  ['broadcast', 'of long data fails with it', 16_000_000, 'ERR_COLL_PEER_LOST 1'],
  ['broadcast', 'of short data ends, which left with the call', 1_000, 'ended'],
  ['send', 'of long data fails with it', 16_000_000, 'ERR_COLL_PEER_LOST 1'],
])('a receiver dies: a %s %s, and the next call names it', async (verb, _, count, expected) => {
  const [root, receiver] = await withRanks(2, module, 'receiverDies', { args: [verb, count], env });
  expect(receiver!.signal).toBe('SIGKILL');
  expect(root!.value).toEqual([expected, 'ERR_COLL_PEER_LOST 1']);
});

it('tells all why it aborts before it leaves, although the lowest rank is busy', async () => {
  expect(values(await withRanks(3, module, 'abortAndClose', { env }))).toEqual([
    'rank 1 aborted the group: enough',
    'closed',
    'rank 1 aborted the group: enough',
  ]);
});

it('ends by itself when the script forgets to close', async () => {
  expect(values(await withRanks(2, module, 'endWithoutClose', { env }))).toEqual(['sum 2', 'sum 2']);
});

it('can be in several groups', async () => {
  expect(values(await withRanks(2, module, 'severalGroups', { env }))).toEqual([
    [3, 60],
    [3, 60],
  ]);
});
