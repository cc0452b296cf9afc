// Race 18 of elastic jobs: while the ranks agree on a view without a lost rank, a launcher dies with its ranks.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@ringwise/testing';
import { expect, it, vi } from 'vitest';
import { type Job, numbersFrom, startLauncher } from '../support/command.ts';

/** Starts three launchers with a rank each, which stand for three hosts. The first one keeps the store. */
async function startThree(): Promise<readonly Job[]> {
  const runId = randomUUID();
  const endpoint = `127.0.0.1:${await freePort()}`;
  const where = ['--rdzv-backend', 'c10d', '--rdzv-endpoint', endpoint];
  const flags = ['--elastic', '--nnodes', '3', '--nproc-per-node', '1', ...where];
  const launchers: Job[] = [];
  for (const host of ['first', 'second', 'third']) {
    const launcher = startLauncher(
      runId,
      [...flags, '--local-addr', host],
      'hosts/elastic-steps.ts',
      ['2', '60'],
      { RINGWISE_SECRET: 'of the test' },
    );
    launchers.push(launcher);
    // The others would wait for a store that is not there yet.
    if (host === 'first') await until(launchers, () => launcher.out.stderr.includes('waiting for'));
  }
  return launchers;
}

const until = (launchers: readonly Job[], holds: () => boolean) =>
  vi.waitUntil(holds, { timeout: 60_000, interval: 2 }).catch((error: Error) => {
    throw new Error(`${error.message}\n${said(launchers)}`);
  });

const said = (launchers: readonly Job[]) =>
  launchers.map(({ out }, n) => `launcher ${n}:\n${out.stdout}${out.stderr}`).join('\n');

const has = ({ out }: Job, text: string) => out.stdout.includes(text);

it.each([
  ['at once, after a rank of the second one', 1, async () => {}],
  ['5 ms after a rank of the second one', 1, () => sleep(5)],
  ['30 ms after a rank of the second one', 1, () => sleep(30)],
  // The rank of the first one writes the views.
  ['5 ms after the rank that writes the views', 0, () => sleep(5)],
  // The survivors have agreed on the view by then; they may still be connecting in it.
  [
    'in the view of the survivors',
    1,
    (launchers: readonly Job[]) => until(launchers, () => has(launchers[0]!, 'of 2 ranks')),
  ],
])('a launcher dies %s', { timeout: 120_000 }, async (_, host, pause) => {
  const launchers = await startThree();
  const [first, second, third] = launchers as readonly [Job, Job, Job];
  await until(launchers, () => launchers.every((each) => has(each, 'a step on 3 ranks')));
  const [lost] = (await numbersFrom(launchers[host]!, 'process', 1)).values();
  process.kill(lost!, 'SIGKILL');
  await pause(launchers);
  process.kill(third.pid, 'SIGKILL');
  expect(await Promise.all([first.exitCode, second.exitCode]), said(launchers)).toEqual([0, 0]);
  expect(launchers[host]!.out.stderr).toMatch(/starting rank \d again after SIGKILL/);
  // One rank has stayed in the job; the other one came back, and has its state.
  const ends = [first, second].map(({ out }) => /done after .*/.exec(out.stdout)?.[0]);
  expect(ends[0], said(launchers)).toMatch(/^done after \d+ steps with \w{64}$/);
  expect(ends[1]).toBe(ends[0]);
});
