// Race 22: two jobs have one store; a job is started again over the keys of an earlier one; the keys of a long job do
// not become more and more.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { FileStore, MemoryStore } from '@ringwise/store';
import { expect, test } from 'vitest';
import { foundJob, join, step, stepsUntilChange } from '../../../support/in-process.ts';

test('two jobs in one store do not see each other', async () => {
  const store = new MemoryStore();
  const [ours, theirs] = await Promise.all([
    foundJob(2, { store, runId: 'ours' }),
    foundJob(3, { store, runId: 'theirs' }),
  ]);
  const joining = join({ store, runId: 'theirs', size: 3 });
  await stepsUntilChange(theirs, 0);
  const joined = await joining;
  for (let own = 0; own < 3; own++) expect(await step(ours, own)).toBe(false);
  expect(ours.map(({ view }) => [view.number, view.members.length])).toEqual([
    [0, 2],
    [0, 2],
  ]);
  expect([...theirs, joined].map(({ view }) => [view.number, view.members.length])).toEqual(
    Array(4).fill([1, 4]),
  );
  await Promise.all([...ours, ...theirs, joined].map((member) => member.close()));
});

test('a job that is started again over the keys of one that has ended needs another run id', async () => {
  const folder = mkdtempSync(joinPath(tmpdir(), 'ringwise-elastic-'));
  try {
    const open = () => FileStore.open(joinPath(folder, 'store'));
    const first = await open();
    const before = await foundJob(2, { store: first, runId: 'first' });
    await step(before, 0);
    await Promise.all(before.map((member) => member.close()));
    await first.close();
    const second = await open();
    // Under the old id it learns that the job has ended; it founds no second chain beside the old one.
    await expect(join({ store: second, runId: 'first', size: 1 })).rejects.toMatchObject({
      code: 'ERR_ELASTIC_OVER',
    });
    const [again] = await foundJob(1, { store: second, runId: 'second' });
    expect(again!.view).toMatchObject({ number: 0, finalSteps: 0 });
    await again!.close();
    await second.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a job whose members come and go has as many keys after many views as after a few', async () => {
  const store = new MemoryStore();
  const options = { store, runId: 'long', size: 1 };
  const [first] = await foundJob(1, options);
  const counts: number[] = [];
  for (let steps = 0; counts.length < 8; ) {
    const joining = join(options);
    steps = await stepsUntilChange([first!], steps);
    const second = await joining;
    second.leave();
    await step([first!, second], steps++);
    counts.push(await store.numKeys());
  }
  expect(first!.view.number).toBe(16);
  expect(Math.max(...counts.slice(4))).toBeLessThanOrEqual(Math.max(...counts.slice(0, 4)));
  await first!.close();
});
