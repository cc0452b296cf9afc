import { describe, expect, it } from 'vitest';
import { type End, failureOf } from '../../src/report/failure.ts';
import { reportError } from '../../src/report/last-words.ts';

const second = 1_000_000_000n;
const error = reportError(new Error('x'));
const words = (seconds: bigint, hasHandler = false) => ({ timeNs: seconds * second, error, hasHandler });
const end = (given: Partial<End>): End => ({
  exitCode: 1,
  signal: null,
  endedNs: 100n * second,
  stoppedNs: null,
  lastWords: null,
  ...given,
});
const failedAt = (given: Partial<End>) => {
  const { failedNs } = failureOf(end(given));
  return failedNs === null ? null : failedNs / second;
};

describe('a rank has failed', () => {
  it('when it ended by itself, or at its last error', () => {
    expect(failedAt({})).toBe(100n);
    expect(failedAt({ lastWords: words(10n) })).toBe(10n);
    expect(failedAt({ exitCode: null, signal: 'SIGSEGV', lastWords: words(99n) })).toBe(99n);
  });

  it('before it was stopped, but not after that or if it succeeded', () => {
    expect(failedAt({ stoppedNs: 99n * second, lastWords: words(10n) })).toBe(10n);
    expect(failedAt({ stoppedNs: 99n * second, lastWords: words(100n) })).toBe(null);
    expect(failedAt({ stoppedNs: 99n * second })).toBe(null);
    expect(failedAt({ exitCode: 0, lastWords: words(10n) })).toBe(null);
  });

  it('by an error that its handler has seen, if it ended or was stopped soon after', () => {
    expect(failedAt({ lastWords: words(96n, true) })).toBe(96n);
    const stopped = { exitCode: null, signal: 'SIGTERM', stoppedNs: 80n * second } as const;
    expect(failedAt({ ...stopped, lastWords: words(77n, true) })).toBe(77n);
    expect(failedAt({ ...stopped, lastWords: words(10n, true) })).toBe(null);
    expect(failedAt({ exitCode: 143, stoppedNs: 80n * second, lastWords: words(10n, true) })).toBe(null);
  });

  it('at its end, if it survived its last error, which it did not die of if a signal ended it', () => {
    const lastWords = words(10n, true);
    expect(failureOf(end({ lastWords }))).toEqual({ failedNs: 100n * second, lastWords });
    const killed = end({ exitCode: null, signal: 'SIGKILL', lastWords });
    expect(failureOf(killed)).toEqual({ failedNs: 100n * second, lastWords: null });
  });
});
