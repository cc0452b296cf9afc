import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bin, type Command, isGone, numbersAfter, ringwise, script, until } from '../../support/command.ts';

const waits = `setInterval(() => {}, 1000);`;

/** Starts two ranks and waits until `count` processes have printed their pids. */
async function started(
  source: string,
  count = 2,
  env: Record<string, string> = {},
  flags: readonly string[] = [],
): Promise<{ command: Command; pids: number[] }> {
  const file = script('rank.mjs', `${source}\nconsole.log('pid', process.pid);\n${waits}`);
  const command = ringwise(['run', '--nproc-per-node', '2', ...flags, file], env);
  await until('all run', () => numbersAfter('pid', command.out.stdout).length === count);
  return { command, pids: numbersAfter('pid', command.out.stdout) };
}

describe('a signal to the command', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('%s ends all ranks; exit code %i', async (signal, code) => {
    const { command, pids } = await started('');
    process.kill(command.pid, signal);
    expect(await command.exitCode).toBe(code);
    expect(pids.every(isGone)).toBe(true);
    expect(command.out.stderr).toBe(`ringwise: stopped by ${signal}.\n`);
  });

  it.each([
    ['under nohup', { _: '/usr/bin/nohup' }, []],
    ['if --signals-to-handle leaves it out', {}, ['--signals-to-handle', 'SIGTERM']],
  ] as const)('SIGHUP ends nothing %s', async (_, env, flags) => {
    const { command, pids } = await started('', 2, env, flags);
    process.kill(command.pid, 'SIGHUP');
    process.kill(command.pid, 'SIGTERM');
    expect(await command.exitCode).toBe(143);
    expect(pids.every(isGone)).toBe(true);
    expect(command.out.stderr).toBe('ringwise: stopped by SIGTERM.\n');
  });

  it.skipIf(process.platform !== 'linux')('SIGHUP ends nothing in a shell that ignores it', async () => {
    const file = script('rank.mjs', `console.log('pid', process.pid);\n${waits}`);
    const words = [process.execPath, bin, 'run', file];
    const shell = spawn(
      '/bin/sh',
      ['-c', `trap '' HUP; "$@" & echo "launcher $!"; wait $!`, 'sh', ...words],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, _: '' },
      },
    );
    const out = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      shell[name].setEncoding('utf8').on('data', (text: string) => {
        out[name] += text;
      });
    }
    const exit = once(shell, 'close');
    await until('the rank runs', () => numbersAfter('pid', out.stdout).length === 1);
    const launcher = numbersAfter('launcher', out.stdout)[0]!;
    onTestFinished(() => {
      if (!isGone(launcher)) process.kill(launcher, 'SIGKILL');
    });
    process.kill(launcher, 'SIGHUP');
    process.kill(launcher, 'SIGTERM');
    expect(await exit).toEqual([143, null]);
    expect(out.stderr).toBe('ringwise: stopped by SIGTERM.\n');
  });

  it('reaches each rank once, also from a terminal, and leaves it the time to finish', async () => {
    const { command, pids } = await started(
      `process.on('SIGINT', () => { console.log('saving'); setTimeout(() => process.exit(0), 200); });`,
    );
    // A terminal sends the signal to the whole process group of the command.
    process.kill(-command.pid, 'SIGINT');
    expect(await command.exitCode).toBe(130);
    expect(command.out.stdout.match(/saving/g)).toHaveLength(2);
    expect(pids.every(isGone)).toBe(true);
  });

  it('kills at once when it comes twice', async () => {
    const ignores = `process.on('SIGINT', () => console.log('ignored'));`;
    const { command, pids } = await started(ignores, 2, {}, ['--shutdown-timeout', '600']);
    process.kill(command.pid, 'SIGINT');
    await until('both ranks saw it', () => command.out.stdout.match(/ignored/g)?.length === 2);
    process.kill(command.pid, 'SIGINT');
    await until('the command has ended', () => command.child.exitCode !== null);
    expect(command.child.exitCode).toBe(130);
    expect(pids.every(isGone)).toBe(true);
  });

  it('is not needed when the output is no longer read: the ranks end', async () => {
    const { command, pids } = await started(`setInterval(() => console.log('step'), 5);`);
    command.child.stdout!.destroy();
    expect(await command.exitCode).toBe(143);
    expect(pids.every(isGone)).toBe(true);
    expect(command.out.stderr).toBe(
      'ringwise: stdout is no longer read; the job is stopped.\nringwise: stopped by SIGTERM.\n',
    );
  });
});

/** Source that keeps the main thread of rank 1 busy forever. */
const busy = `import { writeSync } from 'node:fs';
  if (process.env.RANK === '1') { writeSync(1, 'pid ' + process.pid + '\\n'); for (;;); }`;

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0;

/** Returns whether a process has ended and its parent has noticed. */
function isReaped(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

/** Returns the pids of the shells that end the ranks if the command is killed. */
function watchdogsOf(command: Command): number[] {
  const { stdout } = spawnSync('ps', ['-axo', 'pid=,ppid=,comm='], { encoding: 'utf8' });
  const rows = stdout.trim().split('\n');
  const isOurs = (row: string[]) => Number(row[1]) === command.pid && /(^|\/)(da|ba)?sh$/.test(row[2]!);
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(isOurs)
    .map(([pid]) => Number(pid));
}

describe('when the shell that watches the command is killed', () => {
  it('another one takes its place', async () => {
    const { command, pids } = await started('', 2);
    for (let times = 0; times < 3; times++) {
      const before = watchdogsOf(command);
      expect(before).toHaveLength(1);
      process.kill(before[0]!, 'SIGKILL');
      const isNew = (now: number[]) => now.length === 1 && now[0] !== before[0];
      await until('there is another', () => isNew(watchdogsOf(command)));
    }
    process.kill(command.pid, 'SIGKILL');
    await until('the tree is gone', () => pids.every(isGone));
  });

  it.skipIf(!hasPrlimit)(
    'another one takes its place as soon as there are file descriptors for it',
    async () => {
      const { command, pids } = await started('', 2);
      const limit = (files: string) =>
        spawnSync('prlimit', ['--pid', `${command.pid}`, `--nofile=${files}:`]);
      const before = watchdogsOf(command);
      limit('3');
      process.kill(before[0]!, 'SIGKILL');
      await until('the command has seen it', () => isReaped(before[0]!));
      limit('1000');
      await until('there is another', () => watchdogsOf(command).length === 1);
      process.kill(command.pid, 'SIGKILL');
      await until('the tree is gone', () => pids.every(isGone));
    },
  );

  const elsewhere = { PATH: '/nowhere' }; // without setpriv, as on macOS
  it.each([
    ['and then the command', ['one by one'], '', {}],
    ['and the command at once', ['together'], '', {}],
    ['and the command at once, with a rank that never returns to its event loop', ['together'], busy, {}],
    ['and the command at once, where no kernel helps', ['together'], '', elsewhere],
    ['and the command at once, where no kernel helps, with a busy rank', ['together'], busy, elsewhere],
  ])('%s, no rank is left', async (_, [how], source, env) => {
    const { command, pids } = await started(source, 2, env);
    const victims = [...watchdogsOf(command), command.pid];
    expect(victims).toHaveLength(2);
    if (how === 'together') spawnSync('/bin/sh', ['-c', `kill -9 ${victims.join(' ')}`]);
    else for (const pid of victims) process.kill(pid, 'SIGKILL');
    await until('the tree is gone', () => pids.every(isGone));
  });

  it('and the command at once, no rank of another program is left', async () => {
    const file = script('sleeps.sh', 'echo "pid $$"; exec sleep 1000');
    // Nothing is left that could remove the command's temporary folder, so it is in the folder of the test.
    const words = ['run', '--nproc-per-node', '2', '--no-python', '/bin/sh', file];
    const command = ringwise(words, { TMPDIR: dirname(file) });
    await until('all run', () => numbersAfter('pid', command.out.stdout).length === 2);
    const pids = numbersAfter('pid', command.out.stdout);
    // The command has two such shells: one for the ranks, one for the temporary files that hold the ranks' errors.
    const victims = [...watchdogsOf(command).filter((pid) => !pids.includes(pid)), command.pid];
    spawnSync('/bin/sh', ['-c', `kill -9 ${victims.join(' ')}`]);
    await until('the tree is gone', () => pids.every(isGone));
  });
});

describe('when the command is killed with SIGKILL, the whole tree ends', () => {
  it.each([
    ['with ranks that wait', 2, ''],
    ['with ranks that ignore SIGTERM', 2, `process.on('SIGTERM', () => {});`],
    [
      'with processes that the ranks started',
      4,
      `import { spawn } from 'node:child_process';
       console.log('pid', spawn(process.execPath, ['-e', ${JSON.stringify(waits)}]).pid);`,
    ],
    ['with a rank that never returns to its event loop', 2, busy],
    [
      'with a rank that is stopped',
      2,
      `import { writeSync } from 'node:fs';
       if (process.env.RANK === '1') { writeSync(1, 'pid ' + process.pid + '\\n'); process.kill(process.pid, 'SIGSTOP'); }`,
    ],
  ])('%s', async (_, count, source) => {
    const { command, pids } = await started(source, count);
    process.kill(command.pid, 'SIGKILL');
    await until('the tree is gone', () => pids.every(isGone));
  });
});
