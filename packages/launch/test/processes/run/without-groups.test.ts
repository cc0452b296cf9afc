// The launcher on a system without process groups and shell. The command and its ranks are real processes that
// take themselves for processes on Windows.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import { expect, it } from 'vitest';
import { isGone, numbersAfter, ringwise, script, until } from '../../support/command.ts';

/** Variables that make every Node.js process of the command report `platform`. */
function on(platform: string): Record<string, string> {
  const preload = script(
    'platform.cjs',
    `Object.defineProperty(process, 'platform', { value: '${platform}' });`,
  );
  return { NODE_OPTIONS: `--require ${preload}` };
}

const waits = `setInterval(() => {}, 1000);`;
/** Keeps the main thread of rank 1 busy forever. */
const busy = `import { writeSync } from 'node:fs';
  if (process.env.RANK === '1') { writeSync(1, 'pid ' + process.pid + '\\n'); for (;;); }`;

async function started(source: string, platform = 'win32') {
  const file = script('rank.mjs', `${source}\nconsole.log('pid', process.pid);\n${waits}`);
  const command = ringwise(['run', '--nproc-per-node', '2', file], on(platform));
  await until('both run', () => numbersAfter('pid', command.out.stdout).length === 2);
  return { command, pids: numbersAfter('pid', command.out.stdout) };
}

/** Returns the names of the programs that are children of a process. */
function childrenOf(pid: number): string[] {
  const { stdout } = spawnSync('ps', ['-axo', 'ppid=,args='], { encoding: 'utf8' });
  return stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([parent, program]) => (Number(parent) === pid ? [basename(program!)] : []));
}

it('starts ranks without a shell and without other programs', async () => {
  const { command, pids } = await started('');
  expect(childrenOf(command.pid)).toEqual(['node', 'node']);
  process.kill(command.pid, 'SIGTERM');
  expect(await command.exitCode).toBe(143);
  expect(pids.every(isGone)).toBe(true);
});

it('tells ranks a signal, which their handlers can take time for', async () => {
  const handler = `process.on('SIGTERM', (name) => { console.log('saving after', name); setTimeout(() => process.exit(0), 200); });`;
  const { command, pids } = await started(handler);
  process.kill(command.pid, 'SIGTERM');
  expect(await command.exitCode).toBe(143);
  expect(command.out.stdout.match(/saving after SIGTERM/g)).toHaveLength(2);
  expect(pids.every(isGone)).toBe(true);
});

it('ends ranks at once at a second signal', async () => {
  const { command, pids } = await started(`process.on('SIGINT', () => console.log('ignored'));`);
  process.kill(command.pid, 'SIGINT');
  await until('both ranks saw it', () => command.out.stdout.match(/ignored/g)?.length === 2);
  process.kill(command.pid, 'SIGINT');
  expect(await command.exitCode).toBe(130);
  expect(pids.every(isGone)).toBe(true);
});

it.each(['win32', 'darwin'])(
  'ranks on %s end with a launcher that is killed, also busy ones',
  async (platform) => {
    const { command, pids } = await started(busy, platform);
    process.kill(command.pid, 'SIGKILL');
    await once(command.child, 'exit');
    await until('the ranks have ended', () => pids.every(isGone));
  },
);

it('ends the other ranks when one fails, also busy ones, and reports the root cause', async () => {
  const source = `import { writeSync } from 'node:fs';
    if (process.env.RANK === '1') { writeSync(1, 'pid ' + process.pid + '\\n'); for (;;); }
    throw new Error('broken on purpose');`;
  const command = ringwise(['run', '--nproc-per-node', '2', script('rank.mjs', source)], on('win32'));
  expect(await command.exitCode).toBe(1);
  expect(command.out.stderr).toContain('broken on purpose');
  expect(numbersAfter('pid', command.out.stdout).every(isGone)).toBe(true);
});

it('restarts ranks, and a rank ends by itself when its program has ended', async () => {
  const source = `if (process.env.TORCHELASTIC_RESTART_COUNT === '0') process.exit(3);
    process.on('SIGTERM', () => {}).off('SIGTERM', () => {});
    console.log('done', process.env.RANK);`;
  const command = ringwise(
    ['run', '--nproc-per-node', '2', '--max-restarts', '1', script('rank.mjs', source)],
    on('win32'),
  );
  expect(await command.exitCode).toBe(0);
  expect(numbersAfter('done', command.out.stdout).sort()).toEqual([0, 1]);
});

it('starts a program that is not Node.js', async () => {
  const command = ringwise(['run', '--nproc-per-node', '2', '--no-python', '/bin/echo', 'said'], on('win32'));
  expect(await command.exitCode).toBe(0);
  expect(command.out.stdout.match(/said/g)).toHaveLength(2);
});
