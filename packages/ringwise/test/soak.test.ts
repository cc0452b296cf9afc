import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { runJob } from './command.ts';

const program = fileURLToPath(new URL('../../../bench/soak.ts', import.meta.url));

it('50,000 operations leave no memory, file descriptors, threads or handles behind', async () => {
  const { exitCode, stdout, stderr } = await runJob(2, program, ['--small', '50000', '--large', '50']);
  expect(stderr).toBe('');
  expect(JSON.parse(stdout.replace('[0] ', ''))).toMatchObject({
    ranks: 2,
    small: 50_000,
    wrong: 0,
    ok: true,
  });
  expect(exitCode).toBe(0);
});
