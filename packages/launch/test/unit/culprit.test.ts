import { describe, expect, it } from 'vitest';
import type { RankOutcome } from '../../src/agent/rank-process.ts';
import { parseOrder } from '../../src/rendezvous/messages.ts';
import { culpritOf } from '../../src/report/culprit.ts';

const root: RankOutcome = {
  rank: 3,
  host: 'b',
  pid: 7,
  exitCode: null,
  signal: 'SIGKILL',
  failedNs: 1n,
  lastWords: null,
  tail: [],
  logFile: null,
};

const error = {
  name: 'RangeError',
  message: `first line ${'x'.repeat(1_000)}\nsecond line`,
  stack: 'RangeError: first line\n    at train (/there/train.ts:88:3)',
  fields: {},
  cause: null,
};

describe('the rank with the root cause', () => {
  it('is described by its end, its error and its place', () => {
    expect(culpritOf(root)).toEqual({ rank: 3, host: 'b', ending: 'SIGKILL', error: null, at: null });
    const told = culpritOf({ ...root, exitCode: 1, signal: null, lastWords: { timeNs: 1n, error } });
    expect(told).toMatchObject({ ending: 'exit code 1', at: '/there/train.ts:88' });
    expect(told.error).toMatch(/^RangeError: first line x+$/);
    expect(told.error!.length).toBe(300);
  });

  it('travels to other launchers, which take nothing else for it', () => {
    const orderWith = (culprit: unknown) =>
      parseOrder(
        JSON.stringify({ kind: 'finish', outcome: { exitCode: 1, text: 'x', blamed: null, culprit } }),
      );
    expect(orderWith(culpritOf(root))).toMatchObject({ outcome: { culprit: culpritOf(root) } });
    expect(orderWith(undefined)).not.toBe(null);
    for (const wrong of [
      null,
      1,
      'x',
      {},
      { ...culpritOf(root), rank: '3' },
      { ...culpritOf(root), error: 4 },
    ]) {
      expect(orderWith(wrong)).toBe(null);
    }
  });
});
