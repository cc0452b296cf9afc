// Tests what the flags of `ringwise run` do on one host, beyond starting ranks.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { finished, isGone, numbersAfter, ringwise, script, until } from '../../support/command.ts';

const lines = script.bind(
  null,
  'lines.mjs',
  `console.log('out', process.env.RANK); console.error('err', process.env.RANK);`,
);

/** Returns the folder of a local rank in the only run below `logDir`. */
function folderOf(logDir: string, attempt: number, localRank: number): string {
  const runs = readdirSync(logDir);
  expect(runs).toHaveLength(1);
  return join(logDir, runs[0]!, `attempt_${attempt}`, `${localRank}`);
}

describe('logs', () => {
  it('redirects write to files only, per local rank', async () => {
    const file = lines();
    const logDir = join(dirname(file), 'logs');
    const flags = ['--nproc-per-node', '2', '--log-dir', logDir, '--redirects', '0:3,1:1', '--rdzv-id', 'r7'];
    const { exitCode, stdout, stderr } = await finished(['run', ...flags, file]);
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: '', stderr: '[1] err 1\n' });
    expect(readdirSync(logDir)[0]).toMatch(/^r7_/);
    const read = (rank: number, name: string) => readFileSync(join(folderOf(logDir, 0, rank), name), 'utf8');
    expect([read(0, 'stdout.log'), read(0, 'stderr.log'), read(1, 'stdout.log')]).toEqual([
      'out 0\n',
      'err 0\n',
      'out 1\n',
    ]);
    expect(existsSync(join(folderOf(logDir, 0, 1), 'stderr.log'))).toBe(false);
  });

  it('tee writes to both, and a filter chooses the ranks on the terminal', async () => {
    const file = lines();
    const logDir = join(dirname(file), 'logs');
    const flags = ['--nproc-per-node', '2', '--log-dir', logDir, '--tee', '3', '--local-ranks-filter', '1'];
    const { stdout, stderr } = await finished(['run', ...flags, file]);
    expect({ stdout, stderr }).toEqual({ stdout: '[1] out 1\n', stderr: '[1] err 1\n' });
    expect(readFileSync(join(folderOf(logDir, 0, 0), 'stdout.log'), 'utf8')).toBe('out 0\n');
  });

  it('a filter that names no rank of the host says so', async () => {
    const { exitCode, stdout, stderr } = await finished([
      'run',
      '-n',
      '2',
      '--local-ranks-filter',
      '2,7',
      lines(),
    ]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
    expect(stderr).toBe(
      'ringwise: --local-ranks-filter 2,7 hides the output of all ranks here: this host has local ranks 0 to 1.\n',
    );
  });

  it('that cannot be written are dropped with one warning each, and the job goes on', async () => {
    // In its first attempt, the rank lays out the files of the next: a full disk, and a folder in place of a file.
    const file = script(
      'full.mjs',
      `import { mkdirSync, symlinkSync } from 'node:fs';
       import { dirname, join } from 'node:path';
       const { TORCHELASTIC_ERROR_FILE, TORCHELASTIC_RESTART_COUNT: attempt } = process.env;
       const next = join(dirname(TORCHELASTIC_ERROR_FILE), '..', '..', 'attempt_1', '0');
       if (attempt === '0') {
         mkdirSync(join(next, 'stderr.log'), { recursive: true });
         symlinkSync('/dev/full', join(next, 'stdout.log'));
         process.exit(3);
       }
       for (let i = 0; i < 3; i++) {
         console.log('step', i);
         console.error('lost', i);
         await new Promise((resolve) => setTimeout(resolve, 50));
       }`,
    );
    const logDir = join(dirname(file), 'logs');
    const flags = ['--max-restarts', '1', '--log-dir', logDir, '--tee', '3'];
    const { exitCode, stdout, stderr } = await finished(['run', ...flags, file]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '[0] step 0\n[0] step 1\n[0] step 2\n' });
    const warnings = stderr.split('\n').filter((line) => line.includes('no more is written there'));
    expect(warnings.sort()).toEqual([
      expect.stringMatching(
        /^ringwise: .*attempt_1\/0\/stderr\.log: EISDIR: .*; no more is written there\.$/,
      ),
      expect.stringMatching(
        /^ringwise: .*attempt_1\/0\/stdout\.log: ENOSPC: .*; no more is written there\.$/,
      ),
    ]);
  });

  it('whose folder cannot be created are shown instead, and the job goes on', async () => {
    const file = script(
      'blocked.mjs',
      `import { writeFileSync } from 'node:fs';
       import { dirname, join } from 'node:path';
       const { TORCHELASTIC_ERROR_FILE, TORCHELASTIC_RESTART_COUNT: attempt } = process.env;
       if (attempt === '0') {
         writeFileSync(join(dirname(TORCHELASTIC_ERROR_FILE), '..', '..', 'attempt_1'), '');
         process.exit(3);
       }
       console.log('here');`,
    );
    const logDir = join(dirname(file), 'logs');
    const { exitCode, stdout, stderr } = await finished([
      'run',
      ...['--max-restarts', '1', '--log-dir', logDir, '--redirects', '3', file],
    ]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '[0] here\n' });
    // Node 24 says EEXIST where Node 20 and 22 say ENOTDIR.
    expect(stderr).toMatch(
      /ringwise: .*attempt_1\/0: (ENOTDIR|EEXIST): .*; no files of this rank are written\.\n/,
    );
  });

  it('in a folder that cannot be created are refused', async () => {
    const { exitCode, stderr } = await finished(['run', '--log-dir', '/dev/null/logs', lines()]);
    expect(exitCode).toBe(2);
    expect(stderr).toBe(
      "ringwise run: --log-dir expects a folder where it may write, got '/dev/null/logs' " +
        "(ENOTDIR: not a directory, stat '/dev/null/logs').\n",
    );
  });

  it('a folder of its own for each attempt; the report names the file', async () => {
    const file = script(
      'fails.mjs',
      `console.error('attempt', process.env.TORCHELASTIC_RESTART_COUNT, 'of', process.env.TORCHELASTIC_MAX_RESTARTS); process.exit(3);`,
    );
    const logDir = join(dirname(file), 'logs');
    const flags = ['--max-restarts', '1', '--log-dir', logDir, '-r', '2'];
    const { exitCode, stderr } = await finished(['run', ...flags, file]);
    expect(exitCode).toBe(3);
    for (const attempt of [0, 1]) {
      const log = join(folderOf(logDir, attempt, 0), 'stderr.log');
      expect(readFileSync(log, 'utf8')).toBe(`attempt ${attempt} of 1\n`);
      expect(stderr).toContain(`  log: ${log}\n`);
    }
  });

  it('are refused without --log-dir', async () => {
    const { exitCode, stderr } = await finished(['run', '--tee', '3', lines()]);
    expect(stderr).toBe('ringwise run: --tee writes files; expected --log-dir DIR, which says where.\n');
    expect(exitCode).toBe(2);
  });
});

describe('restarts', () => {
  it('start all ranks again until all end well', async () => {
    const file = script(
      'second.mjs',
      `const { RANK, TORCHELASTIC_RESTART_COUNT: attempt } = process.env;
       console.log('pid', process.pid, 'attempt', attempt);
       if (attempt === '0') RANK === '1' ? process.exit(5) : setInterval(() => {}, 1000);`,
    );
    const command = ['run', '--nproc-per-node', '2', '--max-restarts', '3', file];
    const { exitCode, stdout, stderr } = await finished(command);
    expect(exitCode).toBe(0);
    expect(numbersAfter('attempt', stdout).sort()).toEqual([0, 0, 1, 1]);
    expect(stderr).toContain(
      'ringwise: starting all ranks again, 2 ranks on 1 host; restart 1 of 3: rank 1 of 2 failed',
    );
    expect(numbersAfter('pid', stdout).every(isGone)).toBe(true);
  });

  it('end with the last failure', async () => {
    const file = script('never.mjs', `process.exit(5 + Number(process.env.TORCHELASTIC_RESTART_COUNT));`);
    const { exitCode, stderr } = await finished(['run', '--max-restarts', '2', file]);
    expect(exitCode).toBe(7);
    expect(stderr).toMatch(/\nringwise: rank 0 of 1 failed \(exit code 7\)/);
  });

  it('are not for a job that its user stops', async () => {
    const file = script('waits.mjs', `console.log('pid', process.pid); setInterval(() => {}, 1000);`);
    const { pid, out, exitCode } = ringwise(['run', '--max-restarts', '3', file]);
    await until('it runs', () => numbersAfter('pid', out.stdout).length === 1);
    process.kill(pid, 'SIGINT');
    expect(await exitCode).toBe(130);
    expect(out.stderr).toBe('ringwise: stopped by SIGINT.\n');
  });
});

describe('other programs as ranks', () => {
  it('runs any program with its arguments', async () => {
    const file = script('hello.sh', 'echo "$RANK of $WORLD_SIZE: $*"');
    const { exitCode, stdout } = await finished([
      'run',
      '--no-python',
      '--nproc-per-node',
      '2',
      'sh',
      file,
      '--lr',
      '1',
    ]);
    expect(stdout.split('\n').sort()).toEqual(['', '[0] 0 of 2: --lr 1', '[1] 1 of 2: --lr 1']);
    expect(exitCode).toBe(0);
  });

  it('starts nothing without the program', async () => {
    expect(await finished(['run', '--no-python', 'no-such-program'])).toEqual({
      exitCode: 2,
      stdout: '',
      stderr:
        'ringwise run: no program no-such-program; expected a file that may be executed, in a folder of PATH. Nothing was started.\n',
    });
  });

  it("shows the error that a program leaves in torchrun's error file", async () => {
    const json = JSON.stringify({
      message: {
        message: 'ValueError: bad shape',
        extraInfo: {
          py_callstack:
            'Traceback (most recent call last):\n  File "/elsewhere/train.py", line 12, in main\n',
          timestamp: '1',
        },
      },
    });
    const file = script(
      'torch.sh',
      `echo '${json.replaceAll('\\n', '\\\\n')}' > "$TORCHELASTIC_ERROR_FILE"; echo pid $$; echo folder $TORCHELASTIC_ERROR_FILE; exit 1`,
    );
    const { exitCode, stdout, stderr } = await finished(['run', '--no-python', 'sh', file]);
    expect(stderr).toContain('\n  ValueError: bad shape   /elsewhere/train.py:12\n');
    expect(exitCode).toBe(1);
    const left = /folder (.*)\/attempt_0/.exec(stdout)![1]!;
    expect(existsSync(left)).toBe(false);
  });

  it('leaves no folder when the command is killed', async () => {
    const file = script('waits.sh', 'echo folder $TORCHELASTIC_ERROR_FILE; echo pid $$; sleep 60');
    const { pid, out } = ringwise(['run', '--no-python', 'sh', file]);
    await until('the rank runs', () => numbersAfter('pid', out.stdout).length === 1);
    const folder = /folder (.*)\/attempt_0/.exec(out.stdout)![1]!;
    expect(existsSync(folder)).toBe(true);
    process.kill(pid, 'SIGKILL');
    await until('the folder is gone', () => !existsSync(folder));
  });

  it('writes such a file for a rank that is node', async () => {
    const file = script('throws.mjs', `throw new RangeError('token 50304');`);
    const logDir = join(dirname(file), 'logs');
    await finished(['run', '--log-dir', logDir, file]);
    const { message } = JSON.parse(readFileSync(join(folderOf(logDir, 0, 0), 'error.json'), 'utf8'));
    expect(message).toEqual({
      message: 'RangeError: token 50304',
      extraInfo: {
        py_callstack: expect.stringContaining('throws.mjs:1'),
        timestamp: expect.stringMatching(/^\d{10}$/),
      },
    });
  });

  it('runs Python scripts unbuffered', async () => {
    const file = script(
      'rank.py',
      `import os, sys\nprint(os.environ["RANK"], sys.argv[1:], flush=False)\nos.kill(os.getpid(), 9)\n`,
    );
    const { exitCode, stdout } = await finished(['run', file, 'a']);
    expect(stdout).toBe("[0] 0 ['a']\n");
    expect(exitCode).toBe(137);
  });
});

describe('--signals-to-handle', () => {
  it('passes on the signals that it names', async () => {
    const file = script(
      'usr1.mjs',
      `process.on('SIGUSR1', () => { console.log('saving'); process.exit(0); });
       console.log('pid', process.pid); setInterval(() => {}, 1000);`,
    );
    const { pid, out, exitCode } = ringwise(['run', '--signals-to-handle', 'SIGTERM,SIGUSR1', file]);
    await until('it runs', () => numbersAfter('pid', out.stdout).length === 1);
    process.kill(pid, 'SIGUSR1');
    expect(await exitCode).toBe(138);
    expect(out.stdout).toContain('[0] saving\n');
  });
});

describe('--dry-run', () => {
  it('prints what each process would get, and starts nothing', async () => {
    const file = script('never.mjs', `console.log('started');`);
    const flags = [
      '--dry-run',
      '--nnodes',
      '2',
      '--node-rank',
      '1',
      '--nproc-per-node',
      '2',
      '--master-addr',
      'gpu-a',
    ];
    const { exitCode, stdout, stderr } = await finished(['run', ...flags, file, '--lr', '1'], {
      RINGWISE_SECRET: 'hush',
    });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/^rank 2: .*node.* .*never\.mjs --lr 1\n/);
    expect(stdout).toMatch(/\nrank 3: .*\n(?: {2}\w+=.*\n)* {2}RANK=3\n {2}LOCAL_RANK=1\n {2}WORLD_SIZE=4\n/);
    expect(stdout).toContain('\n  MASTER_ADDR=gpu-a\n  MASTER_PORT=29500\n');
    expect(stdout).not.toContain('hush');
    expect(stdout).not.toContain('started');
  });

  it.each([
    [
      'of a Python script, whose store is open and on loopback',
      'never.py',
      ['--master-addr', '0.0.0.0'],
      {},
      '',
    ],
    ['with an empty secret', 'never.mjs', ['--master-addr', '0.0.0.0'], { RINGWISE_SECRET: '' }, ''],
    ['of hosts that meet on loopback without a secret', 'never.mjs', ['--nnodes', '2'], {}, ''],
    ['on one host', 'never.mjs', [], {}, '(secret)'],
  ])('shows the address and the secret %s', async (_, name, flags, env, secret) => {
    const { stdout } = await finished(['run', '--dry-run', ...flags, script(name, '')], env);
    expect(stdout).toContain('\n  MASTER_ADDR=127.0.0.1\n');
    expect(/\n {2}RINGWISE_SECRET=(.*)\n/.exec(stdout)?.[1] ?? '').toBe(secret);
  });

  it('says that hosts need a secret', async () => {
    const flags = ['--nnodes', '2', '--master-addr', '192.0.2.1'];
    const { exitCode, stdout, stderr } = await finished([
      'run',
      '--dry-run',
      ...flags,
      script('never.mjs', ''),
    ]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain('needs a secret; expected RINGWISE_SECRET');
  });
});
