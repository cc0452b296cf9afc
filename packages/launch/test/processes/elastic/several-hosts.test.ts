// Several launchers form one elastic job over loopback. Each launcher stands for one host.

import { freePort } from '@ringwise/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Command, isGone, numbersAfter, ringwise, script, until } from '../../support/command.ts';
import { elasticProgram } from '../../support/elastic-program.ts';

let port: number;

// All launchers get the port as a flag, so the test chooses it before any of them listens.
beforeEach(async () => {
  port = await freePort();
});

/** A launcher counts as lost after 8 s: on a busy machine one may get no processor for seconds. */
const patient = 'join_timeout=120,keep_alive_interval=0.2,keep_alive_max_attempt=40';

/** Starts a launcher with two ranks of a job on up to three hosts. The first launcher keeps the store. */
function launcher(file: string, ...flags: string[]): Command {
  const where = ['--nnodes', '1:3', '--rdzv-backend', 'c10d', '--rdzv-endpoint', `127.0.0.1:${port}`];
  const args = ['run', '--elastic', '-n', '2', ...where, '--rdzv-conf', patient, ...flags, file];
  return ringwise(args, { RINGWISE_SECRET: 'a secret that all launchers of the test share' });
}

const pids = ({ out }: Command) => numbersAfter('pid', out.stdout);
const inView = async (command: Command, ...members: string[]) =>
  until(`a view of ${members}`, () => command.out.stdout.includes(`has ${members.join(' ')}\n`));

/** Starts two launchers, the second one when the job of the first one runs. */
async function twoHosts(file: string): Promise<readonly [Command, Command]> {
  const first = launcher(file);
  await inView(first, '0.0', '1.0');
  const second = launcher(file, '--local-addr', 'late');
  await inView(second, '0.0', '1.0', '2.0', '3.0');
  return [first, second];
}

describe('an elastic job', () => {
  it('gets the slots of a host that comes late, and stops no rank for it', async () => {
    const [first, second] = await twoHosts(script('train.mjs', elasticProgram()));
    expect(pids(first)).toHaveLength(2);
    expect(pids(first).some(isGone)).toBe(false);
    expect(second.out.stdout).toMatch(/^\[3\] pid \d+ slot 3 start 0$/m);
    // The launcher reads the views beside its ranks, so it may tell of this one later than they do.
    await until('the join', () => /view \d+, after step \d+: \d ranks.* joined/.test(first.out.stderr));
  });

  it('loses with a launcher only the slots of its host, which the next one takes over', async () => {
    const file = script('train.mjs', elasticProgram());
    const [first, second] = await twoHosts(file);
    process.kill(second.pid, 'SIGKILL');
    await until('the end of the ranks there', () => pids(second).every(isGone));
    // The program may see the end of one rank before that of the other.
    await until('a smaller view', () => /2 ranks, lost ranks? (2, 3|2|3)/.test(first.out.stderr));
    expect(pids(first)).toHaveLength(2);
    const third = launcher(file);
    await inView(third, '0.0', '1.0', '2.1', '3.1');
    expect(pids(first).some(isGone)).toBe(false);
  });

  it('goes on without a host that is told to stop, when its ranks have left', async () => {
    const [first, second] = await twoHosts(script('train.mjs', elasticProgram()));
    process.kill(second.pid, 'SIGTERM');
    expect(await second.exitCode).toBe(143);
    await until('the leave', () => /ranks? (2, 3|2|3) left/.test(first.out.stderr));
    expect(pids(first)).toHaveLength(2);
    expect(pids(first).some(isGone)).toBe(false);
  });

  it('starts a slot of another host again', async () => {
    const [first, second] = await twoHosts(script('train.mjs', elasticProgram()));
    process.kill(pids(second)[0]!, 'SIGKILL');
    await until('another start', () => /slot [23] start 1\n/.test(second.out.stdout));
    expect(pids(first).some(isGone)).toBe(false);
    expect(second.out.stderr).toMatch(/starting rank [23] again after SIGKILL, restart 1 of 3/);
  });

  it('ends on all hosts when the one with the store is told to stop', async () => {
    const [first, second] = await twoHosts(script('train.mjs', elasticProgram()));
    process.kill(first.pid, 'SIGINT');
    expect(await first.exitCode).toBe(130);
    expect(await second.exitCode).toBe(130);
    expect([...pids(first), ...pids(second)].every(isGone)).toBe(true);
  });

  it('ends on all hosts with the root cause', async () => {
    const [first, second] = await twoHosts(
      script(
        'train.mjs',
        elasticProgram(
          '',
          `if (id === '3.0') setTimeout(() => { throw new RangeError('token'); }, 500);
        if (slot === 3 && incarnation > 0) throw new RangeError('token');`,
        ),
      ),
    );
    expect(await first.exitCode).toBe(1);
    expect(await second.exitCode).toBe(1);
    for (const { out } of [first, second]) expect(out.stderr).toMatch(/rank 3 of 4 failed \(exit code 1\)/);
    expect(second.out.stderr).toContain('RangeError: token');
  });
});
