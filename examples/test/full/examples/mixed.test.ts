// Tests the job of Python and Node ranks; skipped if no Python with PyTorch is installed.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { example, ringwise } from '../../support/run.ts';

const python = [process.env.RINGWISE_PYTHON ?? '', 'python3', '/usr/bin/python3'].find(
  (name) => name && spawnSync(name, ['-c', 'import torch']).status === 0,
);
// Older versions write other keys to the store, by which init() does not recognise them.
const isModern =
  python !== undefined &&
  spawnSync(python, ['-c', 'import torch; assert int(torch.__version__.split(".")[0]) >= 2']).status === 0;
const skipped = python ? '' : ' (skipped: no Python with torch)';

/** Runs `nprocs` ranks of a program other than Node to their end, with a limit of 100 s. */
async function runRanks(nprocs: number, ...rank: string[]) {
  const argv = [ringwise, 'run', '--nproc-per-node', `${nprocs}`, '--no-python', ...rank];
  const env = { ...process.env, RINGWISE_SECRET: '', PYTHON_EXEC: python };
  const job = spawn(process.execPath, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const deadline = setTimeout(() => job.kill('SIGKILL'), 100_000);
  const [stdout, stderr, [exitCode]] = await Promise.all([
    text(job.stdout),
    text(job.stderr),
    once(job, 'close'),
  ]);
  clearTimeout(deadline);
  return { stdout, stderr, exitCode };
}

it.skipIf(!python)(`Python and Node ranks meet in one store${skipped}`, { timeout: 120_000 }, async () => {
  const { stdout, stderr, exitCode } = await runRanks(3, example('mixed/rank.sh'));
  expect(stdout.trim().split('\n').sort(), stderr).toEqual([
    '[0] rank 0 (Python) got [100, 400]',
    '[1] rank 1 (Node) squared 10',
    '[2] rank 2 (Node) squared 20',
  ]);
  expect(exitCode).toBe(0);
});

it.skipIf(!isModern)(
  `a rank that is PyTorch 2 with gloo is named${skipped}`,
  { timeout: 120_000 },
  async () => {
    const rank = `if [ "$RANK" = 0 ]; then exec node "$0"
    else exec "$PYTHON_EXEC" -c 'import torch.distributed as dist; dist.init_process_group("gloo")'; fi`;
    const { stderr, exitCode } = await runRanks(2, 'sh', '-c', rank, example('test/fixtures/mixed-gloo.mjs'));
    expect(stderr).toMatch(
      /init: rank 1 of 2 did not arrive within \d+ ms; rank 1 is PyTorch with gloo: the store is shared, collectives are not /,
    );
    expect(exitCode).toBe(1);
  },
);
