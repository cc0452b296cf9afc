import { afterEach, expect, it, vi } from 'vitest';
import { withDeadlines } from '../../src/index.ts';

const warnings = vi.spyOn(console, 'warn').mockImplementation(() => {});
afterEach(() => void warnings.mockClear());

it('takes the first deadline with which the attempt succeeds', async () => {
  const tried: number[] = [];
  const attempt = async (deadlineMs: number) => {
    tried.push(deadlineMs);
    if (deadlineMs < 20) throw new Error('too short');
    return `done within ${deadlineMs}`;
  };
  expect(await withDeadlines([10, 20, 30], attempt)).toBe('done within 20');
  expect(tried).toEqual([10, 20]);
  expect(warnings.mock.calls).toEqual([
    ['failed with a deadline of 10 ms, is repeated with a longer one: Error: too short'],
  ]);
});

it('rejects with the error of the last deadline', async () => {
  const attempt = async (deadlineMs: number) => {
    throw new Error(`failed within ${deadlineMs}`);
  };
  await expect(withDeadlines([10, 20], attempt)).rejects.toThrow('failed within 20');
  expect(warnings).toHaveBeenCalledTimes(1);
});
