// Runs elastic.ts twice, undisturbed and with a rank killed two times while it trains, and compares the losses.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { example, ringwise, run } from '../../support/run.ts';

let folder: string;
let job: ChildProcess | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-elastic-'));
});
afterEach(async () => {
  if (job && job.exitCode === null && job.signalCode === null) {
    job.kill('SIGKILL');
    await once(job, 'exit');
  }
  job = undefined;
  rmSync(folder, { recursive: true });
});

const argv = (snapshot: string, ...flags: string[]) => [
  ...[ringwise, 'run', '--nproc-per-node', '2', ...flags],
  ...[example('elastic.ts'), '--epochs', '12', '--snapshot', join(folder, snapshot)],
];
const lastLoss = (stdout: string) => /epoch 11 of 12 on 2 ranks: loss (\S+)/.exec(stdout)?.[1];

it('a killed rank costs the work since the last snapshot and changes nothing else', {
  timeout: 120_000,
}, async () => {
  const undisturbed = await run(argv('undisturbed.safetensors'));
  expect(undisturbed).toMatchObject({ exitCode: 0, stderr: '' });
  expect(undisturbed.stdout).toContain('[0] starting from scratch\n');

  job = spawn(process.execPath, [...argv('killed.safetensors', '--max-restarts', '2'), '--pause-ms', '100'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  const kills = ['epoch 2 of', 'epoch 6 of'];
  job.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  job.stdout!.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    if (kills[0] === undefined || !stdout.includes(kills[0])) return;
    kills.shift();
    const pids = [...stdout.matchAll(/rank 1 of 2 runs as pid (\d+)/g)];
    process.kill(Number(pids.at(-1)![1]), 'SIGKILL');
  });
  const [exitCode] = await once(job, 'close');
  expect(exitCode, stderr).toBe(0);
  expect(kills).toEqual([]);
  expect(stderr).toContain('restart 1 of 2: rank 1 of 2 failed (SIGKILL)');
  expect(stderr).toContain('restart 2 of 2: rank 1 of 2 failed (SIGKILL)');
  expect(stdout.match(/resuming from epoch \d+/g)).toHaveLength(2);
  expect(lastLoss(stdout)).toBe(lastLoss(undisturbed.stdout));
  expect(readdirSync(folder).sort()).toEqual(['killed.safetensors', 'undisturbed.safetensors']);
});
