// How the launcher of a store to which a job has moved lets other hosts join it.
import { MemoryStore } from '@ringwise/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openSlotAgent } from '../../../src/agent/slot-agent.ts';
import { type Admission, admitAfterMove } from '../../../src/rendezvous/elastic/admit.ts';
import {
  elasticStore,
  endedKey,
  headKey,
  openedKey,
  viewKey,
} from '../../../src/rendezvous/elastic/elastic-keys.ts';
import { jobKey, watchedKey } from '../../../src/rendezvous/job-keys.ts';
import type { SlotOrder } from '../../../src/rendezvous/messages.ts';
import { type ParticipantOptions, type SlotHosting, takePart } from '../../../src/rendezvous/take-part.ts';

const keepAlive = { everyMs: 500, attempts: 20 };
const lost = { exitCode: 1, text: 'lost', blamed: null };
let store: MemoryStore;
let admission: Admission;
let moves: number;
let views: number[];
beforeEach(() => {
  store = new MemoryStore();
  moves = 0;
  views = [];
  admission = admitAfterMove(store, {
    ...{ runId: 'run', maxRanks: 3, keepAlive, silentMs: 1_500, onMove: () => void moves++ },
    onView: ({ number }) => void views.push(number),
  });
});
afterEach(async () => {
  await admission.close(lost);
  await store.close();
});

/** Writes a view as members do that have moved; the one with which they open the store if it is of epoch 0. */
async function write(
  number: number,
  epoch: number,
  members: readonly string[],
  lost: readonly string[] = [],
): Promise<void> {
  const ranks = elasticStore('run', store);
  const lists = { joined: [], lost, left: [] };
  const view = { number, epoch, members: members.map((id) => ({ id, standby: null })), ...lists };
  await ranks.set(viewKey(number), JSON.stringify({ ...view, finalSteps: 5, ended: null }));
  await ranks.set(headKey, `${number}`);
  if (epoch === 0) await ranks.set(openedKey, '0');
}

function join(options: Partial<ParticipantOptions> = {}) {
  const member = { id: 'd', host: 'd', nproc: 2, nodeRank: null };
  const start = () => Promise.reject(new Error('not ordered'));
  return takePart({ member, store, where: 'here', keepAlive, say: () => {}, start, ...options });
}

/** Makes slots whose processes run the script that `scriptOf` returns. */
const slotsThat = (scriptOf: (order: SlotOrder) => string): SlotHosting => ({
  open: (tell) =>
    openSlotAgent({
      ...{ shutdownTimeoutMs: 60_000, graceMs: 60_000, onExit: () => {} },
      onEnded: (slot, incarnation, outcome) => tell(slot, incarnation, outcome, null),
    }),
  start: async (agent, order) => {
    const args = ['-e', scriptOf(order)];
    const spec = { rank: order.slot, command: [process.execPath], args, isNode: false, env: process.env };
    agent.start(spec, order.incarnation, {});
  },
  follow: () => Promise.resolve(null),
});

test('the job can be joined when enough members have moved, and not before', async () => {
  await write(7, 0, ['0.0', '1.0', '2.0']);
  await expect(store.get(jobKey, { timeoutMs: 300 })).rejects.toThrow();
  expect([moves, admission.hasMoved()]).toEqual([0, false]);
  await write(8, 1, ['1.0', '2.0']);
  expect(Buffer.from(await store.get(jobKey)).toString()).toBe('run');
  expect(Buffer.from(await store.get(watchedKey)).toString()).toBe('false');
  await expect.poll(() => moves).toBe(1);
  expect(views).toEqual([8]);
  expect(admission.hasMoved()).toBe(true);
});

test('a launcher that joins starts its ranks, again if they fail, and ends with them', async () => {
  await write(7, 0, ['0.0', '1.0', '2.0']);
  await write(8, 1, ['1.0', '2.0']);
  const [started, told]: [string[], string[]] = [[], []];
  const part = join({
    maxRestarts: 1,
    slots: {
      ...slotsThat(({ slot, incarnation, localWorldSize, worldSize }) => {
        started.push(`${slot}.${incarnation} of ${localWorldSize} here and ${worldSize}`);
        return `process.exit(${incarnation === 0 ? 3 : 0})`;
      }),
      follow: async (id, ending) => {
        told.push(`${id} ${ending}`);
        return 5;
      },
    },
  });
  expect(await part.outcome).toEqual({ exitCode: 0, text: null, blamed: null });
  expect(started).toEqual(['3.0 of 1 here and 4', '3.1 of 1 here and 4']);
  expect(told).toEqual(['3.0 exit code 3']);
});

test('a launcher without --elastic is told what to do', async () => {
  await write(7, 0, ['0.0', '1.0', '2.0']);
  await write(8, 1, ['1.0', '2.0']);
  await expect(join().outcome).rejects.toMatchObject({
    code: 'ERR_LAUNCH_ARGUMENT',
    message: expect.stringContaining('the job at here is elastic; expected --elastic on this host') as string,
  });
});

test('a launcher that waits for a slot is told how the job has ended', async () => {
  await write(7, 0, ['0.0', '1.0', '2.0']);
  await write(8, 1, ['0.1', '1.0', '2.0']);
  const said: string[] = [];
  const part = join({ say: (text) => said.push(text) });
  await expect.poll(() => said, { timeout: 20_000 }).toHaveLength(1);
  expect(said[0]).toContain('all 3 ranks of the job have a host');
  const outcome = { exitCode: 0, text: null, blamed: null };
  await Promise.all([admission.close(outcome), expect(part.outcome).resolves.toEqual(outcome)]);
});

test('a lost slot whose launcher has reported the end is kept for longer than one whose launcher is silent', async () => {
  await write(7, 0, ['0.0', '1.0', '2.0']);
  await write(8, 1, ['0.0', '1.0', '2.0']);
  const said: string[] = [];
  const started: string[] = [];
  const part = join({
    say: (text) => said.push(text),
    slots: slotsThat(({ slot, localWorldSize }) => {
      started.push(`${slot} of ${localWorldSize}`);
      return 'process.exit(0)';
    }),
  });
  await expect.poll(() => said, { timeout: 20_000 }).toHaveLength(1);
  await elasticStore('run', store).set(endedKey('1.0'), 'exit code 3');
  await write(9, 1, ['0.0'], ['1.0', '2.0']);
  expect(await part.outcome).toMatchObject({ exitCode: 0 });
  expect(started).toEqual(['3 of 1']); // and not `of 2`: slot 1 is kept
});

test('closing before the job has moved ends the wait', async () => {
  await admission.close(null);
  expect(admission.hasMoved()).toBe(false);
});
