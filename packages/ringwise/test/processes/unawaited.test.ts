// Tests programs that do not await a call that fails.
import { expect, it } from 'vitest';
import { runJob } from '../support/command.ts';

it.each([
  ['mismatch', 'allReduce: nothing awaited this call, and it failed: rank 0 called allReduce sum 1', 6],
  ['refused', 'allReduce: nothing awaited this call, and it failed: cannot use string as a buffer', 7],
  ['after-close', 'allReduce: nothing awaited this call, and it failed: the group is closed', 22],
  [
    'mismatch-after-refused',
    'allReduce: nothing awaited this call, and it failed: rank 0 called allReduce sum 1',
    46,
  ],
  ['refused-closed', 'allReduce: nothing awaited this call, and it failed: cannot use string as a buffer', 9],
] as const)(
  'a failure that nothing has awaited (%s) ends the rank with its error',
  async (how, sentence, line) => {
    const { exitCode, stderr } = await runJob(2, 'unawaited.mjs', [how]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`  CollectiveError: ${sentence}`);
    expect(stderr).toMatch(new RegExp(`unawaited\\.mjs:${line}$`, 'm'));
  },
);

it.each([
  ['mismatch-closed', 13],
  ['nothing-awaited', 17],
] as const)('close() reports a failure that nothing has awaited (%s)', async (how, line) => {
  const { exitCode, stderr } = await runJob(2, 'unawaited.mjs', [how]);
  expect(exitCode).toBe(1);
  expect(stderr).toContain('  CollectiveError: allReduce: rank 0 called allReduce sum 1 × float32 (seq 0)');
  expect(stderr).toMatch(new RegExp(`unawaited\\.mjs:${line}$`, 'm'));
});

it('a mismatch that close() finds has the line of close()', async () => {
  const { exitCode, stderr } = await runJob(2, 'unawaited.mjs', ['roots']);
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/^ {2}CollectiveError: close: rank 0 called broadcast .* {3}\S*unawaited\.mjs:26$/m);
});

it.each(['told', 'told-closed', 'told-after-close', 'fine'])(
  'a program that has got the error, or has none, ends well (%s)',
  async (how) => {
    const { exitCode, stdout, stderr } = await runJob(2, 'unawaited.mjs', [how]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const code = how === 'told-after-close' ? 'ERR_COLL_CLOSED' : 'ERR_COLL_MISMATCH';
    if (how !== 'fine') expect(stdout.split('\n').sort()).toEqual(['', `[0] ${code}`, `[1] ${code}`]);
  },
);
