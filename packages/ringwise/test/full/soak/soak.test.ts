import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { runJob } from '../../support/command.ts';

const bench = (name: string) => fileURLToPath(new URL(`../../../../../bench/${name}`, import.meta.url));

it('50,000 operations leave no memory, file descriptors, threads or handles behind', async () => {
  const { exitCode, stdout, stderr } = await runJob(2, bench('soak.ts'), [
    '--small',
    '50000',
    '--large',
    '50',
  ]);
  expect(stderr).toBe('');
  expect(JSON.parse(stdout.replace('[0] ', ''))).toMatchObject({
    ranks: 2,
    small: 50_000,
    wrong: 0,
    ok: true,
  });
  expect(exitCode).toBe(0);
});

// With 200 inits, a leak exceeds the noise of holdings.ts if each init leaks 10.5 KB of heap or 84 KB outside of it;
// with 100 subgroups twice as much. With the bench's default of 5,000, 0.4 KB of heap or 3.4 KB outside of it are
// enough.
it('200 inits and 100 subgroups leave nothing behind', async () => {
  const { exitCode, stdout } = await runJob(2, bench('soak-groups.ts'), [
    ...['--inits', '200'],
    ...['--subgroups', '100'],
  ]);
  expect(JSON.parse(stdout.replace('[0] ', ''))).toMatchObject({ ranks: 2, wrong: 0, ok: true });
  expect(exitCode).toBe(0);
});
