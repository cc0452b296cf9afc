// Tests progress() of @ringwise/data under the launcher, whose output is no terminal here.
import { expect, it } from 'vitest';
import { runJob } from '../support/command.ts';

it('rank 0 prints the end of each pass as a plain line, and other ranks print none', async () => {
  const { exitCode, stderr } = await runJob(2, 'progress.mjs');
  expect(exitCode).toBe(0);
  const lines = stderr.trimEnd().split('\n');
  expect(lines).toHaveLength(2);
  for (const [index, line] of lines.entries())
    expect(line).toMatch(new RegExp(`^\\[0\\] epoch ${index + 1} █+ {2}2/2 `));
});
