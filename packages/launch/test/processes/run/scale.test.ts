import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { isGone, numbersAfter, ringwise, script, until } from '../../support/command.ts';

const ranks = 64;

it(`${ranks} ranks start, sleep, and are gone when they are stopped`, async () => {
  const file = script('sleeps.mjs', `console.log('pid', process.pid); setInterval(() => {}, 1000);`);
  const command = ringwise(['run', '--nproc-per-node', `${ranks}`, file]);
  await until('all run', () => numbersAfter('pid', command.out.stdout).length === ranks, 180_000);
  const pids = numbersAfter('pid', command.out.stdout);
  expect(new Set(pids).size).toBe(ranks);
  // With four pipes for each rank, 250 ranks would reach the limit of open files of many systems.
  expect(readdirSync(`/proc/${command.pid}/fd`).length).toBeLessThan(4 * ranks + 40);
  process.kill(command.pid, 'SIGTERM');
  await until('the command has ended', () => command.child.exitCode !== null);
  expect(command.child.exitCode).toBe(143);
  expect(command.out.stderr).toBe('ringwise: stopped by SIGTERM.\n');
  expect(pids.filter((pid) => !isGone(pid))).toEqual([]);
});
