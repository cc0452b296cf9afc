// `ringwise run --elastic` on one host: the end of a rank stops no other.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withDeadlines } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import { type Command, finished, isGone, ringwise, script, until } from '../../support/command.ts';
import { elasticProgram } from '../../support/elastic-program.ts';

/** Returns the pid of the process of a slot, by how often the slot was started before. */
function pidOf({ out }: Command, slot: number, start = 0): number | null {
  const [, pid] = new RegExp(`pid (\\d+) slot ${slot} start ${start}\\n`).exec(out.stdout) ?? [];
  return pid === undefined ? null : Number(pid);
}
const hasView = ({ out }: Command, ...members: string[]) => out.stdout.includes(`has ${members.join(' ')}\n`);
const kill = (command: Command, slot: number, start: number, signal: NodeJS.Signals = 'SIGKILL') =>
  process.kill(pidOf(command, slot, start)!, signal);

const inView = async (command: Command, ...members: string[]) =>
  until(`a view of ${members}`, () => hasView(command, ...members));

describe('ringwise run --elastic', () => {
  it('starts only the slot of a lost rank again, with its incarnation, log file and prefix', async () => {
    const file = script(
      'train.mjs',
      elasticProgram("if (slot === 1) console.log('rank ' + process.env.RANK + ' of ' + size);"),
    );
    const logs = join(file, '..', 'logs');
    const flags = ['--log-dir', logs, '--tee', '3', '--metrics', join(file, '..', 'metrics.jsonl')];
    const command = ringwise(['run', '--elastic', '-n', '3', ...flags, file]);
    await inView(command, '0.0', '1.0', '2.0');
    const told = () => command.out.stdout.match(/^\[1\] rank 1 of 3$/gm)?.length ?? 0;
    for (const start of [0, 1]) {
      kill(command, 1, start);
      await until('another start', () => told() === start + 2);
    }
    expect(pidOf(command, 1, 2)).not.toBeNull();
    expect([0, 2].map((slot) => isGone(pidOf(command, slot)!))).toEqual([false, false]);
    expect(command.out.stderr).toContain(
      'ringwise: starting rank 1 again after SIGKILL, restart 1 of 3; the others go on.\n',
    );
    await until('a view without it', () => /after step \d+: \d ranks?, lost rank 1/.test(command.out.stderr));
    process.kill(command.pid, 'SIGTERM');
    expect(await command.exitCode).toBe(143);
    expect(command.out.stderr).toContain('stopped by SIGTERM.');
    const [run] = readdirSync(logs);
    const log = readFileSync(join(logs, run!, 'attempt_0', '1', 'stdout.log'), 'utf8');
    expect([...log.matchAll(/slot 1 start (\d)/g)].map(([, start]) => start)).toEqual(['0', '1', '2']);
  });

  it('tells the others at once how a rank ended', async () => {
    const told = `if (slot === 0) for (const each of ['1.0', '2.0'])
        void store.get('ended/' + each).then((end) => console.log('told ' + each + ' ' + text(end)));
      if (id === '2.0') setTimeout(() => process.exit(7), 300);`;
    const command = ringwise(['run', '--elastic', '-n', '3', script('train.mjs', elasticProgram('', told))]);
    await inView(command, '0.0', '1.0', '2.0');
    kill(command, 1, 0);
    await until(
      'the ends',
      () => /told 1\.0 SIGKILL/.test(command.out.stdout) && /told 2\.0 7/.test(command.out.stdout),
    );
    await inView(command, '0.0', '1.1', '2.1');
  });

  it('ends with the root cause when a rank has used up its restarts, and stops the others', async () => {
    const fails = `if (slot === 1) throw new RangeError('token 50304');`;
    const file = script('train.mjs', elasticProgram('', fails));
    const { exitCode, stderr } = await finished(['run', '--elastic', '-n', '2', '--max-restarts', '1', file]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /ringwise: rank 1 of 2 failed \(exit code 1\) after .*\n {2}RangeError: token 50304 {3}train\.mjs:\d+/,
    );
    expect(stderr).toContain('this rank has been started again once, as often as --max-restarts allows.');
  });

  it('ends when the same line fails three times at the same step', async () => {
    const fails = `if (slot > 0) { await new Promise((r) => setTimeout(r, 100)); throw new RangeError('bad sample'); }`;
    const file = script('train.mjs', elasticProgram('', fails, 0));
    const { exitCode, stderr } = await finished(['run', '--elastic', '-n', '4', file]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/this line of the program has failed 3 times at step \d+/);
    expect(stderr).toContain('RangeError: bad sample');
  });

  it('treats a failure before the first view as any failure', async () => {
    const file = script('train.mjs', elasticProgram(`if (slot === 1) process.exit(3);`));
    const { exitCode, stderr } = await finished(['run', '--elastic', '-n', '2', file]);
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(/rank 1 of 2 failed \(exit code 3\)/);
    expect(stderr).not.toContain('again');
  });

  it('does not start a rank again that has ended with 0, and ends well with the last', async () => {
    const file = script('train.mjs', elasticProgram());
    const command = ringwise(['run', '--elastic', '-n', '3', file]);
    await inView(command, '0.0', '1.0', '2.0');
    kill(command, 2, 0, 'SIGTERM');
    await inView(command, '0.0', '1.0');
    kill(command, 1, 0, 'SIGTERM');
    await inView(command, '0.0');
    // The launcher reads the views beside its ranks, so it may tell of this one later than they do.
    await until('the leave', () => command.out.stderr.includes('rank 2 left'));
    kill(command, 0, 0, 'SIGTERM');
    expect(await command.exitCode).toBe(0);
    expect(command.out.stdout).not.toContain('start 1');
  });

  it('kills a stopped rank that the others have left out', async () => {
    const drops = `if (id === '0.0') process.once('SIGUSR2', () => void store.set('ended/1.0', 'stopped'));`;
    const command = ringwise(['run', '--elastic', '-n', '2', script('train.mjs', elasticProgram(drops))]);
    await inView(command, '0.0', '1.0');
    kill(command, 1, 0, 'SIGSTOP');
    kill(command, 0, 0, 'SIGUSR2');
    await until('the second start', () => pidOf(command, 1, 1) !== null);
    expect(isGone(pidOf(command, 1, 0)!)).toBe(true);
  });

  it('ends its ranks when it is killed', async () => {
    const command = ringwise(['run', '--elastic', '-n', '2', script('train.mjs', elasticProgram())]);
    await inView(command, '0.0', '1.0');
    kill(command, 1, 0);
    await until('the second start', () => pidOf(command, 1, 1) !== null);
    process.kill(command.pid, 'SIGKILL');
    const pids = [pidOf(command, 0)!, pidOf(command, 1, 1)!];
    await until('the end of the ranks', () => pids.every(isGone));
  });

  it('gives ranks the grace time to leave, and no more', async () => {
    const stays = `process.removeAllListeners('SIGTERM'); process.on('SIGTERM', () => console.log('stays'));`;
    const file = script('train.mjs', elasticProgram(stays));
    await withDeadlines([1_000, 10_000], async (graceMs) => {
      const command = ringwise(['run', '--elastic', '--grace', `${graceMs / 1000}`, '-n', '2', file]);
      await inView(command, '0.0', '1.0');
      process.kill(command.pid, 'SIGTERM');
      expect(await command.exitCode).toBe(143);
      expect(command.out.stdout.match(/stays/g)).toHaveLength(2);
      expect([0, 1].every((slot) => isGone(pidOf(command, slot)!))).toBe(true);
    });
  });
});
