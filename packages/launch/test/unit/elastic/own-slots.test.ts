// What a launcher decides for the slots of its host when the launcher that decided for all is lost.
import { expect, test } from 'vitest';
import type { RankOutcome } from '../../../src/agent/rank-process.ts';
import { OwnSlots } from '../../../src/rendezvous/elastic/own-slots.ts';
import type { SlotOrder } from '../../../src/rendezvous/messages.ts';

const order = (slot: number, incarnation = 0): SlotOrder => ({
  ...{ kind: 'slot', slot, incarnation, localRank: slot, localWorldSize: 2, worldSize: 6 },
  ...{ groupRank: 1, groupWorldSize: 3, why: null },
});

const ended = (exitCode: number | null, fields: Record<string, unknown> | null = null): RankOutcome => ({
  ...{ rank: 0, host: 'b', pid: 1, exitCode, signal: exitCode === null ? 'SIGKILL' : null, failedNs: null },
  lastWords: fields && {
    timeNs: 0n,
    error: { name: 'Error', message: 'boom', stack: '', fields, cause: null },
    hasHandler: false,
  },
  ...{ tail: [], logFile: null },
});

/** Decides for slots 2 and 3. `finalSteps` is what the search for the store finds, or does. */
function begin(
  finalSteps: number | null | ((signal: AbortSignal) => Promise<number | null>),
  maxRestarts = 3,
) {
  const [said, started, told]: [string[], SlotOrder[], string[]] = [[], [], []];
  const slots = new OwnSlots(new Map([2, 3].map((slot) => [slot, order(slot)])), {
    maxRestarts,
    say: (text) => said.push(text),
    follow: async (id, ending, signal) => {
      told.push(`${id} ${ending}`);
      return typeof finalSteps === 'function' ? await finalSteps(signal) : finalSteps;
    },
    start: async (each) => void started.push(each),
  });
  let isOver = false;
  const over = slots.ended.then(() => {
    isOver = true;
  });
  return { slots, said, started, told, over, isOver: () => isOver };
}

/** Waits until so many processes have been started. */
const starts = (started: readonly SlotOrder[], count: number) =>
  expect.poll(() => started.length).toBe(count);

/** Lets the event loop turn, in which nothing is expected to happen. */
const turns = () => new Promise((resolve) => setTimeout(resolve, 5));

test('a process that fails is started again in the store that was found, and the launcher ends with the last one', async () => {
  const { slots, said, started, told, over, isOver } = begin(7);
  slots.handle(2, 0, ended(null), 6);
  await starts(started, 1);
  expect(told).toEqual(['2.0 SIGKILL']);
  expect(started).toEqual([
    { ...order(2, 1), why: 'starting rank 2 again after SIGKILL, restart 1 of 3; the others go on.' },
  ]);
  slots.handle(2, 0, ended(null), 6); // of the process before
  slots.handle(3, 0, ended(0), 9);
  await turns();
  expect(isOver()).toBe(false);
  slots.handle(2, 1, ended(0), 9);
  await over;
  expect(started).toHaveLength(1);
  expect(said).toEqual([]);
});

test('a process that came when the training was over is done', async () => {
  const { slots, said, started, over } = begin(7);
  slots.handle(3, 0, ended(0), null);
  slots.handle(2, 0, ended(1, { code: 'ERR_ELASTIC_OVER' }), null);
  await over;
  expect(said).toEqual([]);
  expect(started).toEqual([]);
});

test('a process is not started again if no store is found, the job has ended, or it may not be', async () => {
  const cases = [
    [begin(null), ended(1), 'the job has ended, or no store to which its ranks have moved was found'],
    [begin(7), ended(1, { code: 'ERR_ELASTIC_ENDED' }), 'it says that the job has ended.'],
    [begin(7, 0), ended(1), '--max-restarts 0 allows no more since this launcher decides for it.'],
  ] as const;
  for (const [{ slots, said, started, over }, outcome, why] of cases) {
    slots.handle(3, 0, ended(0), null);
    slots.handle(2, 0, outcome, null);
    await over;
    expect(said).toEqual([expect.stringContaining(`rank 2 is not started again after exit code 1: ${why}`)]);
    expect(started).toEqual([]);
  }
});

test('a line that fails again and again at the same step is not started a third time', async () => {
  const { slots, said, started, over } = begin(7);
  slots.handle(3, 0, ended(0), null);
  slots.handle(2, 0, ended(1, {}), 7);
  await starts(started, 1);
  slots.handle(2, 1, ended(1, {}), 7);
  await starts(started, 2);
  slots.handle(2, 2, ended(1, {}), 7);
  await over;
  expect(said).toEqual([expect.stringContaining('this line of the program has failed 3 times at step 7')]);
});

test('nothing is started once the launcher is stopped, also if the store is being looked for', async () => {
  const { slots, said, started, over, isOver } = begin(
    (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  );
  slots.handle(2, 0, ended(null), null);
  await turns();
  slots.stop();
  await turns();
  expect(isOver()).toBe(false);
  slots.handle(3, 0, ended(1), null);
  await over;
  expect([said, started]).toEqual([[], []]);
});

test('an error of a start ends the wait', async () => {
  const slots = new OwnSlots(new Map([[2, order(2)]]), {
    ...{ maxRestarts: 3, say: () => {}, follow: async () => 7 },
    start: () => Promise.reject(new Error('there is no memory')),
  });
  slots.handle(2, 0, ended(null), null);
  await expect(slots.ended).rejects.toThrow('there is no memory');
});
