// The mixed job, where a Python with torch is installed.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { example, ringwise } from './run.ts';

const python = ['/usr/bin/python3', 'python3'].find(
  (name) => spawnSync(name, ['-c', 'import torch']).status === 0,
);

it.skipIf(!python)(
  `Python and Node ranks meet in one store${python ? '' : ' (skipped: no Python with torch)'}`,
  {
    timeout: 120_000,
  },
  async () => {
    const argv = [ringwise, 'run', '--nproc-per-node', '3', '--no-python', example('mixed/rank.sh')];
    const env = { ...process.env, RINGWISE_SECRET: '', PYTHON_EXEC: python };
    const job = spawn(process.execPath, argv, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const deadline = setTimeout(() => job.kill('SIGKILL'), 100_000);
    let stdout = '';
    job.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    const [exitCode] = await once(job, 'close');
    clearTimeout(deadline);
    expect(stdout.trim().split('\n').sort()).toEqual([
      '[0] rank 0 (Python) got [100, 400]',
      '[1] rank 1 (Node) squared 10',
      '[2] rank 2 (Node) squared 20',
    ]);
    expect(exitCode).toBe(0);
  },
);
