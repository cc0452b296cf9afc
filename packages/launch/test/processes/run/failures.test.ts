import { readFileSync } from 'node:fs';
import { withDeadlines } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import { finished, isGone, numbersAfter, ringwise, script, until } from '../../support/command.ts';

/** Keeps a rank alive until it is stopped. */
const waits = `setInterval(() => {}, 1000);`;

it('stops the others when a rank throws, and names it with its error', async () => {
  const file = script(
    'throws.mjs',
    `console.log('pid', process.pid);
     if (process.env.RANK === '1') throw Object.assign(new RangeError('token 50304'), { code: 'ERR_X' });
     ${waits}`,
  );
  const { exitCode, stdout, stderr } = await finished(['run', '--nproc-per-node', '3', file]);
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(
    /ringwise: rank 1 of 3 failed \(exit code 1\) after \d+\.\d s; ranks 0, 2 were stopped\./,
  );
  expect(stderr).toContain('  RangeError: token 50304   throws.mjs:2\n');
  expect(stderr).toContain('[1] RangeError: token 50304');
  expect(numbersAfter('pid', stdout).every(isGone)).toBe(true);
});

it('reports rejections that nobody handles, and errors while the script is loaded', async () => {
  const rejects = script('rejects.mjs', `Promise.reject(new TypeError('not awaited')); ${waits}`);
  expect((await finished(['run', rejects])).stderr).toContain('  TypeError: not awaited   rejects.mjs:1\n');
  const imports = script('imports.mjs', `import './absent.mjs';`);
  const { exitCode, stderr } = await finished(['run', imports]);
  expect(stderr).toContain(`ringwise: rank 0 of 1 failed (exit code 1)`);
  expect(stderr).toMatch(/\n {2}Error: Cannot find module .*absent\.mjs/);
  expect(exitCode).toBe(1);
});

it('ends with the exit code of the rank, and shows its last output', async () => {
  const file = script(
    'exits.mjs',
    `if (process.env.RANK === '0') { console.log('loss is NaN'); process.exit(7); }
     ${waits}`,
  );
  const { exitCode, stderr } = await finished(['run', '--nproc-per-node', '2', file]);
  expect(exitCode).toBe(7);
  expect(stderr).toContain('ringwise: rank 0 of 2 failed (exit code 7)');
  expect(stderr).toContain('  last output of rank 0:\n    loss is NaN\n');
});

it('stops the others at once although nobody reads the output', async () => {
  const file = script(
    'unread.mjs',
    `import { writeFileSync } from 'node:fs';
     process.stdout.write('x'.repeat(4 << 20) + '\\n');
     if (process.env.RANK === '0') setTimeout(() => process.exit(7), 300);
     process.on('SIGTERM', () => { writeFileSync(process.argv[2], 'stopped'); process.exit(); });
     ${waits}`,
  );
  const sign = script('sign', '');
  const command = ringwise(['run', '--nproc-per-node', '2', file, sign]);
  command.child.stdout!.pause();
  await until('rank 1 was stopped', () => readFileSync(sign, 'utf8') === 'stopped');
  command.child.stdout!.resume();
  expect(await command.exitCode).toBe(7);
});

it.skipIf(process.platform !== 'linux')('a rank that a real-time signal ended has failed', async () => {
  // Node.js reports this end as exit code 0.
  const file = script(
    'real-time.mjs',
    `import { spawnSync } from 'node:child_process';
     if (process.env.RANK === '1') spawnSync('/bin/sh', ['-c', 'kill -35 ' + process.pid]);`,
  );
  const { exitCode, stderr } = await finished(['run', '--nproc-per-node', '2', file]);
  expect(stderr).toMatch(
    /ringwise: rank 1 of 2 failed \(exit code 163\) after \d+\.\d s\.\n {2}163 is 128 \+ 35: /,
  );
  expect(exitCode).toBe(163);
});

it('names the signal that ended a rank', async () => {
  const file = script(
    'killed.mjs',
    `if (process.env.RANK === '1') process.kill(process.pid, 'SIGKILL');
     ${waits}`,
  );
  const { exitCode, stderr } = await finished(['run', '--nproc-per-node', '2', file]);
  expect(exitCode).toBe(137);
  expect(stderr).toContain('ringwise: rank 1 of 2 failed (SIGKILL)');
});

it('blames the rank that failed on its own, though a peer reported first', async () => {
  // Rank 0 reports first, that it lost its peer. Rank 1, the root cause, exits after it and reports nothing.
  const file = script(
    'echo.mjs',
    `import { existsSync, writeFileSync } from 'node:fs';
     const [ready, thrown] = ['.ready', '.thrown'].map((end) => import.meta.filename + end);
     if (process.env.RANK === '1') {
       writeFileSync(ready, '');
       setInterval(() => { if (existsSync(thrown)) setTimeout(() => process.exit(9), 50); }, 2);
     } else {
       const lost = Object.assign(new Error('lost rank 1'), { code: 'ERR_COLL_PEER_LOST', secondary: true });
       process.on('exit', () => writeFileSync(thrown, ''));
       setInterval(() => { if (existsSync(ready)) throw new Error('step 3 failed', { cause: lost }); }, 2);
     }`,
  );
  const { exitCode, stderr } = await finished(['run', '--nproc-per-node', '2', file]);
  expect(stderr).toContain('ringwise: rank 1 of 2 failed (exit code 9)');
  expect(stderr).toContain('  rank 0 reported Error: step 3 failed   echo.mjs:9\n');
  expect(exitCode).toBe(9);
});

it('blames no rank for an error that it survived long before', async () => {
  // Rank 0 survives an error; its clock makes that 10 s ago. Then rank 1 fails by itself.
  const file = script(
    'survives.mjs',
    `import { existsSync, writeFileSync } from 'node:fs';
     const sign = import.meta.filename + '.survived';
     if (process.env.RANK === '0') {
       const { bigint } = process.hrtime;
       process.hrtime.bigint = () => bigint() - 10_000_000_000n;
       process.on('uncaughtException', () => writeFileSync(sign, ''));
       setTimeout(() => { throw new RangeError('survived'); });
     } else setInterval(() => { if (existsSync(sign)) process.exit(9); }, 5);
     ${waits}`,
  );
  const { exitCode, stderr } = await finished(['run', '--nproc-per-node', '2', file]);
  expect(stderr).toContain('ringwise: rank 1 of 2 failed (exit code 9)');
  expect(exitCode).toBe(9);
});

it('blames a rank for the error that its handler ended it for', async () => {
  const file = script(
    'handles.mjs',
    `process.on('uncaughtException', () => setTimeout(() => process.exit(5), 50));
     if (process.env.RANK === '0') setTimeout(() => { throw new RangeError('handled'); });
     ${waits}`,
  );
  const { exitCode, stderr } = await finished(['run', '--nproc-per-node', '2', file]);
  expect(stderr).toContain('ringwise: rank 0 of 2 failed (exit code 5)');
  expect(stderr).toContain('RangeError: handled');
  expect(exitCode).toBe(5);
});

it('kills ranks that ignore SIGTERM after the shutdown timeout', async () => {
  const file = script(
    'stubborn.mjs',
    `import { existsSync, writeFileSync } from 'node:fs';
     process.on('SIGTERM', () => console.log('ignored'));
     console.log('pid', process.pid);
     const ready = import.meta.filename + '.ready' + process.argv[2];
     if (process.env.RANK === '0') writeFileSync(ready, '');
     else setInterval(() => { if (existsSync(ready)) process.exit(3); }, 5);
     ${waits}`,
  );
  await withDeadlines([1_000, 10_000], async (ms) => {
    const startMs = performance.now();
    const flags = ['--shutdown-timeout', `${ms / 1000}`, '--nproc-per-node', '2'];
    const { exitCode, stdout } = await finished(['run', ...flags, file, `${ms}`]);
    expect(exitCode).toBe(3);
    expect(stdout).toContain('[0] ignored\n');
    expect(performance.now() - startMs).toBeGreaterThan(ms);
    expect(numbersAfter('pid', stdout).every(isGone)).toBe(true);
  });
});

it('wakes ranks that are stopped, so that they can end', async () => {
  // Rank 1 is suspended when rank 0 fails, and suspends itself again while it handles SIGTERM.
  const file = script(
    'stopped.mjs',
    `import { existsSync, readFileSync, writeFileSync } from 'node:fs';
     const sign = import.meta.filename + '.pid';
     if (process.env.RANK === '1') {
       process.on('SIGTERM', () => {
         console.log('saving');
         process.kill(process.pid, 'SIGSTOP');
         console.log('saved');
         process.exit(0);
       });
       writeFileSync(sign, String(process.pid));
       process.kill(process.pid, 'SIGSTOP');
     } else {
       const isStopped = () => existsSync(sign) && / T /.test(readFileSync('/proc/' + readFileSync(sign) + '/stat', 'utf8'));
       setInterval(() => { if (isStopped()) process.exit(3); }, 5);
     }
     ${waits}`,
  );
  // The command must end before the shutdown timeout.
  const { child, out } = ringwise(['run', '--shutdown-timeout', '600', '--nproc-per-node', '2', file]);
  await until('the command has ended', () => child.exitCode !== null);
  expect(child.exitCode).toBe(3);
  expect(out.stdout).toBe('[1] saving\n[1] saved\n');
  expect(out.stderr).toContain('rank 0 of 2 failed (exit code 3)');
});

it('kills what a rank leaves behind when it ends', async () => {
  const file = script(
    'parent.mjs',
    `import { spawn } from 'node:child_process';
     console.log('pid', spawn(process.execPath, ['-e', ${JSON.stringify(waits)}], { stdio: 'inherit' }).pid);
     process.exit(0);`,
  );
  const { exitCode, stdout } = await finished(['run', file]);
  expect(exitCode).toBe(0);
  const pids = numbersAfter('pid', stdout);
  expect(pids).toHaveLength(1);
  await until('the process left behind is gone', () => pids.every(isGone));
});

it('ends although a process that left the group holds the output', async () => {
  const file = script(
    'daemon.mjs',
    `import { spawn } from 'node:child_process';
     const options = { stdio: 'inherit', detached: true };
     console.log('pid', spawn(process.execPath, ['-e', ${JSON.stringify(waits)}], options).pid);
     process.exit(4);`,
  );
  const { child, out } = ringwise(['run', file]);
  await until('the command has ended', () => child.exitCode !== null);
  const [pid] = numbersAfter('pid', out.stdout);
  expect(isGone(pid!)).toBe(false);
  process.kill(pid!, 'SIGKILL');
  expect(child.exitCode).toBe(4);
});

describe('an error file that is not in the usual form', () => {
  it.each([
    ['an object as its message', `'{"message": {"foo": 1}}'`, 'Error: {"foo":1}'],
    ['a number as its message', `'{"message": 5}'`, 'Error: 5'],
    ['an object inside its message', `'{"message": {"message": [1]}}'`, 'Error: [1]'],
    ['no message', `'{"error": "x"}'`, null],
  ])('with %s ends the job as any other', async (_, text, shown) => {
    const file = script('odd.sh', `echo ${text} > "$TORCHELASTIC_ERROR_FILE"; exit 3`);
    const { child, out } = ringwise(['run', '--no-python', '/bin/sh', file]);
    await until('the command has ended', () => child.exitCode !== null);
    expect(child.exitCode).toBe(3);
    expect(out.stderr).toContain('ringwise: rank 0 of 1 failed (exit code 3)');
    if (shown) expect(out.stderr).toContain(`\n  ${shown}\n`);
  });

  it('of another launcher, which this one has inherited, is not read', async () => {
    const inherited = script(
      'error.json',
      JSON.stringify({ message: { message: 'Error: of an earlier job' } }),
    );
    const file = script('killed.mjs', `process.kill(process.pid, 'SIGKILL'); ${waits}`);
    const { stderr } = await finished(['run', file], { TORCHELASTIC_ERROR_FILE: inherited });
    expect(stderr).toContain('ringwise: rank 0 of 1 failed (SIGKILL)');
    expect(stderr).not.toContain('of an earlier job');
  });

  it('with 9 MiB of text ends the job with the beginning of the text, and the end of the stack', async () => {
    const file = script(
      'long.mjs',
      `import { writeFileSync } from 'node:fs';
       const extraInfo = { py_callstack: 'y'.repeat(1 << 20) + '\\n  File "/elsewhere/train.py", line 12, in main' };
       const message = { message: 'ValueError: ' + 'x'.repeat(9 << 20), extraInfo };
       writeFileSync(process.env.TORCHELASTIC_ERROR_FILE, JSON.stringify({ message }));
       process.exit(3);`,
    );
    const { child, out } = ringwise(['run', '--no-python', process.execPath, file]);
    await until('the command has ended', () => child.exitCode !== null);
    expect(child.exitCode).toBe(3);
    expect(out.stderr).toMatch(/\n {2}ValueError: x{16384} {3}\/elsewhere\/train\.py:12\n/);
  });
});
