// Tests the C ABI from other languages: from-python/ through ctypes, and from-c/ in one group with it. Needs python3
// with numpy.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { makeHosts, whyNoNamespaces } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Ended, example } from '../../support/run.ts';

const native = fileURLToPath(new URL('../../../../native', import.meta.url));
const library = join(native, 'npm', `capi-${process.platform}-${process.arch}`, 'libringwise.so');
const env = { ...process.env, LD_LIBRARY_PATH: dirname(library), PYTHONDONTWRITEBYTECODE: '1' };
const everyVerb = example('test/fixtures/from-python-ranks.py');

/** The first python3 that has numpy, or undefined. */
const python = ['python3', '/usr/bin/python3'].find((candidate) => {
  try {
    execFileSync(candidate, ['-c', 'import numpy'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
});

const children: ChildProcess[] = [];

async function ended(child: ChildProcess): Promise<Ended> {
  children.push(child);
  const [stdout, stderr, [exitCode]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close'),
  ]);
  return { exitCode, stdout, stderr };
}

function run(program: string, ...argv: string[]): Promise<Ended> {
  return ended(spawn(program, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] }));
}

const range = (size: number) => Array.from({ length: size }, (_, index) => index);
const satisfied = (rank: number, size: number): Ended => {
  return { exitCode: 0, stdout: `rank ${rank} of ${size} is satisfied\n`, stderr: '' };
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-examples-'));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

/** Compiles from-c/all_reduce.c, and returns the path of the program. */
function compiled(): string {
  const program = join(folder, 'all_reduce');
  const flags = ['-std=c11', '-Wall', '-Wextra', '-Werror', '-pedantic', `-I${join(native, 'coll/include')}`];
  const link = [`-L${dirname(library)}`, '-lringwise', '-o', program];
  execFileSync(process.env.CC ?? 'cc', [...flags, example('from-c/all_reduce.c'), ...link]);
  return program;
}

it('from C: a group that cannot be created, and wrong arguments, are said', async () => {
  const program = compiled();
  expect(await run(program, '2', '2', folder)).toEqual({
    exitCode: 1,
    stdout: '',
    stderr: expect.stringMatching(/rank.*2/),
  });
  expect(await run(program)).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: 'usage: all_reduce RANK SIZE FOLDER\n',
  });
});

describe.skipIf(python === undefined)(
  `from Python${python ? '' : ' (skipped: no python3 with numpy)'}`,
  () => {
    it('all_reduce.py sums numpy arrays on two ranks that it starts itself', async () => {
      const { exitCode, stdout, stderr } = await run(python!, example('from-python/all_reduce.py'));
      expect(stderr).toBe('');
      const lines = stdout.trimEnd().split('\n').sort();
      expect(lines).toEqual([
        expect.stringMatching(/^rank 0 of 2 has the sum of 2 numpy arrays( and PyTorch tensors)?$/),
        expect.stringMatching(/^rank 1 of 2 has the sum of 2 numpy arrays( and PyTorch tensors)?$/),
      ]);
      expect(exitCode).toBe(0);
    });

    it.each([1, 3])(
      'every verb works on numpy arrays of %i ranks, and errors are exceptions',
      async (size) => {
        const all = range(size).map((rank) => run(python!, everyVerb, `${rank}`, `${size}`, folder));
        expect(await Promise.all(all)).toEqual(range(size).map((rank) => satisfied(rank, size)));
      },
    );

    const reason = whyNoNamespaces();
    it.skipIf(reason !== null)(`the same on two hosts${reason ? ` (skipped: ${reason})` : ''}`, async () => {
      const made = makeHosts(2);
      try {
        const all = range(4).map((rank) => {
          const host = made.hosts[rank % 2]!;
          return ended(made.start(host, [python!, everyVerb, `${rank}`, '4', folder, host.address], { env }));
        });
        expect(await Promise.all(all)).toEqual(range(4).map((rank) => satisfied(rank, 4)));
      } finally {
        await made.close();
      }
    });

    it('ranks in Python and C are one group', async () => {
      const program = compiled();
      const job = join(folder, 'job');
      mkdirSync(job, { mode: 0o700 });
      const results = await Promise.all([
        run(program, '0', '3', job),
        run(python!, example('from-python/all_reduce.py'), '1', '3', job),
        run(program, '2', '3', job),
      ]);
      const said = (rank: number, what: string): Ended => {
        return { exitCode: 0, stdout: `rank ${rank} of 3 has the sum of 3 ${what}\n`, stderr: '' };
      };
      expect(results).toEqual([said(0, 'C arrays'), said(1, 'numpy arrays'), said(2, 'C arrays')]);
    });
  },
);
