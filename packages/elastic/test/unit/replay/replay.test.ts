// Reads membership logs, and the sizes of a job by step from them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loopbackGroups } from '@ringwise/collectives';
import { expect, it } from 'vitest';
import { type LogEntry, writeLog } from '../../../src/job/log.ts';
import { phasesOf, readLog, replayMembership } from '../../../src/replay/replay.ts';

const entry = (view: number, step: number, size: number): LogEntry => {
  const slots = [...Array(size).keys()];
  return { view, step, size, slots, decision: 'redo', joined: [], lost: [], left: [] };
};

it('leaves out views that made no step final, and repeated entries', () => {
  const entries = [
    entry(0, 0, 3),
    entry(2, 4, 1),
    entry(1, 4, 2),
    entry(0, 0, 3),
    entry(3, 4, 2),
    entry(4, 9, 2),
  ];
  expect(phasesOf(entries)).toEqual([
    { step: 0, size: 3 },
    { step: 4, size: 2 },
    { step: 9, size: 2 },
  ]);
  expect(phasesOf([entry(0, 0, 2), entry(1, 0, 1), entry(2, 5, 2)])).toEqual([
    { step: 0, size: 1 },
    { step: 5, size: 2 },
  ]);
});

it('refuses entries of two jobs', () => {
  const other = expect.objectContaining({ code: 'ERR_ELASTIC_REPLAY' });
  for (const second of [entry(1, 7, 1), entry(1, 4, 2)])
    expect(() => phasesOf([entry(0, 0, 2), entry(1, 4, 1), entry(0, 0, 2), second])).toThrow(other);
  expect(() => phasesOf([entry(1, 4, 1), entry(1, 7, 1)])).toThrow('two entries for view 1');
});

it('a job begins a new file, and its later views append to it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-elastic-'));
  try {
    const file = join(folder, 'log.jsonl');
    for (const step of [4, 7]) {
      writeLog(file, entry(0, 0, 2), true);
      writeLog(file, entry(0, 0, 2), false);
      writeLog(file, entry(1, step, 1), true);
      expect(readLog(file)).toEqual([entry(0, 0, 2), entry(1, step, 1)]);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('reads a file of lines, and names a line that is no entry', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-elastic-'));
  try {
    const file = join(folder, 'log.jsonl');
    writeFileSync(file, `${JSON.stringify(entry(0, 0, 2))}\n${JSON.stringify(entry(1, 3, 1))}\n`);
    expect(readLog(file)).toEqual([entry(0, 0, 2), entry(1, 3, 1)]);
    writeFileSync(file, `${JSON.stringify(entry(0, 0, 2))}\n{"view":1}\n`);
    expect(() => readLog(file)).toThrow(`elastic: line 2 of ${file} is no entry of a membership log`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('makes the groups of the phases, and tells who joins', async () => {
  const phases = [
    { step: 0, size: 2 },
    { step: 2, size: 1 },
    { step: 3, size: 3 },
  ];
  const groups = loopbackGroups(3, { timeoutMs: 60_000 });
  const seen = await Promise.all(
    groups.map(async (group) => {
      const membership = await replayMembership(group, phases);
      const views = [[membership.first.joined, membership.group.size]];
      for (let step = membership.view.finalSteps; step < 4; ) {
        const { changesView, isLeaving } = await membership.vote({ agreed: [] });
        expect(isLeaving).toBe(false);
        step++;
        if (!changesView) continue;
        const change = await membership.change({ finalSteps: step, isComplete: false, hasState: true });
        views.push([change.joined, change.group.size]);
        step = change.view.finalSteps;
      }
      await membership.close();
      return views;
    }),
  );
  const last = [[1, 2], 3];
  expect(seen).toEqual([[[[0, 1], 2], [[], 1], last], [[[0, 1], 2], last], [last]]);
  await expect(replayMembership(loopbackGroups(1)[0]!, phases)).rejects.toThrow(
    'elastic: the largest view of the log has 3 members, and 1 processes replay it; expected at least as many processes.',
  );
});
