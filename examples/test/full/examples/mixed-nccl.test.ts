// Tests the mixed job over NCCL, with PyTorch on one GPU that all ranks share. On the software device, which PyTorch
// cannot use, another Node process takes the place of Python.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { hasTestDevice, isTestGpu, useTestDevice } from '@ringwise/testing';
import { expect, it } from 'vitest';
import { example, ringwise } from '../../support/run.ts';

/** Prints the path of PyTorch's libnccl, which the Node ranks must also use; nothing if it is built into PyTorch. */
const probe = `
import torch
assert torch.cuda.is_available()
print(*{line.split()[-1] for line in open("/proc/self/maps") if "libnccl.so" in line})
`;

interface First {
  /** The program that rank.sh starts as Python for rank 0. */
  readonly program: string;
  readonly libnccl?: string;
  readonly says: string;
}

/** Finds the program for rank 0. Returns null if there is no device, or no Python whose PyTorch has CUDA. */
function findFirst(): First | null {
  if (!isTestGpu) {
    const program = example('test/fixtures/mixed-nccl-first.mjs');
    return hasTestDevice ? { program, says: 'rank 0 (in the place of Python) has the sum 6' } : null;
  }
  for (const program of [process.env.RINGWISE_TEST_PYTHON ?? '', 'python3', '/usr/bin/python3']) {
    const { status, stdout } = spawnSync(program || 'false', ['-c', probe], { encoding: 'utf8' });
    if (status === 0) return { program, libnccl: stdout.trim(), says: 'rank 0 (Python) has the sum 6' };
  }
  return null;
}

const first = findFirst();
const missing = isTestGpu ? 'no Python whose torch has CUDA' : 'no device has been built';

it.skipIf(!first)(
  `PyTorch and Node ranks all-reduce in one NCCL communicator${first ? '' : ` (skipped: ${missing})`}`,
  { timeout: 120_000 },
  async () => {
    const { program, libnccl, says } = first!;
    useTestDevice();
    const env = { ...process.env, RINGWISE_SECRET: '', PYTHON_EXEC: program };
    if (libnccl) Object.assign(env, { RINGWISE_LIBNCCL: libnccl });
    // NCCL refuses two ranks of one host on one device, so NCCL_HOSTID makes each rank look like a host of its own.
    const rank = ['sh', '-c', 'LOCAL_RANK=0 NCCL_HOSTID=$RANK exec "$0"', example('mixed-nccl/rank.sh')];
    const argv = [ringwise, 'run', '--nproc-per-node', '3', '--no-python', ...rank];
    const job = spawn(process.execPath, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const deadline = setTimeout(() => job.kill('SIGKILL'), 100_000);
    const [stdout, stderr, [exitCode]] = await Promise.all([
      text(job.stdout),
      text(job.stderr),
      once(job, 'close'),
    ]);
    clearTimeout(deadline);
    expect(stdout.trim().split('\n').sort(), stderr).toEqual([
      `[0] ${says}`,
      '[1] rank 1 (Node) has the sum 6',
      '[2] rank 2 (Node) has the sum 6',
    ]);
    expect(exitCode).toBe(0);
  },
);
