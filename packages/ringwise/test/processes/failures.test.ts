// Tests what a user sees when a job fails under the real command. command.ts checks after each test that no process of
// the job is left.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeIdx } from '@ringwise/data/idx';
import { withDeadlines } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { command, numbersFrom, runJob, startJob } from '../support/command.ts';
import { processesOf, sharedMemoryOf, socketNames, socketNamesOf } from '../support/traces.ts';

describe('ranks that disagree', () => {
  it.each([
    ['count', '100 × float32', '101 × float32'],
    ['dtype', '100 × float32', '100 × float64'],
  ])('in %s get a sentence on both sides, and the job one root cause', async (how, first, second) => {
    const { exitCode, stderr } = await runJob(2, 'disagree.ts', [how]);
    const sentence =
      `CollectiveError: allReduce: rank 0 called allReduce sum ${first} (seq 0) but rank 1 called ` +
      `allReduce sum ${second} (seq 0)`;
    expect(stderr).toContain(`[0] ${sentence}`);
    expect(stderr).toContain(`[1] ${sentence}`);
    expect(stderr.match(/^ringwise: rank [01] of 2 failed \(exit code 1\)/gm)).toHaveLength(1);
    expect(stderr).toContain(`\n  ${sentence}`);
    expect(stderr).toMatch(/\n {2}rank [01] reported ERR_COLL_MISMATCH {3}disagree\.ts:\d+\n$/);
    // The error was made in a callback; its stack still has the line of the program, on both ranks.
    for (const rank of [0, 1])
      expect(stderr).toMatch(new RegExp(`^\\[${rank}\\] {5}at async .*disagree\\.ts:\\d+:\\d+`, 'm'));
    expect(exitCode).toBe(1);
  });
});

describe('a rank that does not make a call', () => {
  const deadlines = [1_000, 15_000] as const;
  const sentences = (stderr: string, what: string) =>
    [...stderr.matchAll(new RegExp(`^\\[(\\d)\\] CollectiveError: ${what} \\(group "world"`, 'gm'))]
      .map(([, rank]) => rank)
      .sort();

  it('is named at the deadline by all, with the call that it made last, and since when it does nothing', async () => {
    await withDeadlines(deadlines, async (ms) => {
      const { exitCode, stderr } = await runJob(3, 'absent.ts', [`${ms}`]);
      const what =
        `allReduce: rank 1 never entered allReduce #1 \\(max of 4 × float32, absent.ts:8\\) within ${ms} ms; it has been ` +
        'idle for \\d+\\.\\d s, after broadcast #0 \\(3 × int32 from rank 0, absent.ts:6\\)';
      expect(sentences(stderr, what)).toEqual(['0', '2']);
      expect(stderr).toMatch(
        /^ringwise: rank [02] of 3 failed \(exit code 1\) after [\d.]+ s; rank 1 was stopped\.$/m,
      );
      expect(exitCode).toBe(1);
    });
  });

  it('is named with the call in which it waits instead, also by itself', async () => {
    await withDeadlines(deadlines, async (ms) => {
      const { exitCode, stderr } = await runJob(3, 'elsewhere.ts', [`${ms}`]);
      const what =
        `(recv|allReduce): rank 2 never entered allReduce #1 \\(128 × float32, elsewhere.ts:1[23]\\) within ${ms} ms; it has ` +
        'been in recv #0 for \\d+\\.\\d s \\(1 × uint8 from rank 0 with tag 3, elsewhere.ts:17\\)';
      expect(sentences(stderr, what)).toEqual(['0', '1', '2']);
      expect(exitCode).toBe(1);
    });
  });

  it('is reported as not reacting at all if it is stopped', async () => {
    await withDeadlines(deadlines, async (ms) => {
      const job = startJob(3, 'stopped.ts', [`${ms}`]);
      const pids = await numbersFrom(job, 'pid', 3);
      try {
        await expect.poll(() => job.out.stderr).toMatch(/^\[0\] CollectiveError/m);
      } finally {
        process.kill(pids.get(1)!, 'SIGCONT');
      }
      const what =
        `barrier: no answer from rank 1 within ${ms} ms in barrier #1 \\(stopped.ts:9\\); it does not react at all ` +
        '\\(stopped, or its host is out of reach\\)';
      await job.exitCode;
      expect(sentences(job.out.stderr, what)).toEqual(expect.arrayContaining(['0', '2']));
    });
  });
});

describe('a rank that is killed', () => {
  it.each(['reduce-forever.ts', 'train-forever.ts'])(
    'in the middle of %s is named by all others long before the deadline, and by the launcher; it leaves nothing',
    async (script) => {
      const filesBefore = sharedFiles();
      const job = startJob(3, script);
      const pids = await numbersFrom(job, 'pid', 3);
      expect(processesOf(job.runId)).toEqual(expect.arrayContaining([...pids.values()]));
      const names = [...pids.values()].flatMap(socketNamesOf);
      expect(names.filter((name) => /^ringwise-[0-9a-f]{32}$/.test(name)).length).toBeGreaterThanOrEqual(3);
      const memory = [...pids.values()].flatMap(sharedMemoryOf);
      expect(new Set(memory)).toEqual(
        new Set(['ringwise', 'ringwise arena', 'ringwise board'].map((name) => `/memfd:${name} (deleted)`)),
      );

      process.kill(pids.get(1)!, 'SIGKILL');
      expect(await job.exitCode).toBe(128 + 9);

      const noticed = await numbersFrom(job, 'noticed', 2);
      expect([...noticed.keys()].sort()).toEqual([0, 2]);
      // The report says it of them, in one line; their own texts would hide the root cause.
      expect(job.out.stderr).not.toContain('CollectiveError');
      expect(job.out.stderr).toMatch(/^ringwise: rank 1 of 3 failed \(SIGKILL\)/m);
      expect(job.out.stderr).toContain(`\n  pid ${pids.get(1)} on `);
      expect(job.out.stderr).toMatch(
        /\n {2}ranks 0, 2 reported ERR_COLL_PEER_LOST( {3}\S+-forever\.ts:\d+)?\n$/,
      );

      expect(socketNames().filter((name) => names.includes(name))).toEqual([]);
      expect(sharedFiles().filter((file) => !filesBefore.includes(file))).toEqual([]);
    },
  );

  // Returns only ringwise's files, because other programs of this host put files into the folder too.
  const sharedFiles = () => readdirSync('/dev/shm').filter((name) => name.includes('ringwise'));
});

it('a rank that throws is the root cause, with its line; those that waited for it are secondary', async () => {
  const { exitCode, stderr } = await runJob(3, 'throws.ts');
  expect(stderr).toMatch(/^ringwise: rank 1 of 3 failed \(exit code 1\)/m);
  expect(stderr).toContain('\n  RangeError: token 50304 is outside the vocabulary of 50257   throws.ts:6\n');
  // A rank may still be in the first barrier when rank 1 has left it. Then the two have a line each.
  const reports = [
    ...stderr.matchAll(/^ {2}ranks? ([\d, ]+) reported ERR_COLL_PEER_LOST {3}throws\.ts:[57]$/gm),
  ];
  expect(reports.flatMap(([, ranks]) => ranks!.split(', '))).toEqual(['0', '2']);
  expect(stderr).not.toContain('CollectiveError');
  expect(exitCode).toBe(1);
});

it('a rank that crashes in native code tells where, and its last call; a fault of WebAssembly is no crash', async () => {
  const { exitCode, stdout, stderr } = await runJob(2, 'crashes.mjs');
  expect(stdout.match(/^\[[01]\] caught RuntimeError$/gm)).toHaveLength(2);
  expect(stderr).toMatch(/^ringwise: rank 1 of 2 failed \(SIGABRT\)/m);
  expect(stderr).toMatch(/^ {2}SIGABRT: raised, in thread [\w-]+ \(\d+\)$/m);
  expect(stderr).toMatch(/^ {2}last call in a group of 2 ranks: allReduce #0, done, crashes\.mjs:6$/m);
  expect(stderr).toMatch(/^ {4}at abort\+0x\w+ \(libc/m);
  expect(stderr).toMatch(/\n {2}rank 0 reported ERR_COLL_PEER_LOST {3}crashes\.mjs:\d+\n$/);
  expect(exitCode).toBe(128 + 6);
});

it('a rank that leaves too early is in the report, although its exit code is 0', async () => {
  const { exitCode, stderr } = await runJob(2, 'leaves-early.ts');
  expect(stderr).toMatch(/^ringwise: rank 1 of 2 failed \(exit code 1\)/m);
  expect(stderr).toContain('\n  CollectiveError: barrier: lost rank 0 (');
  expect(stderr).toMatch(/\n {2}rank 0 ended with exit code 0\n$/);
  expect(exitCode).toBe(1);
});

it('a master port that is in use is named before anything is started', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as { port: number };
  const argv = [command, 'run', '--master-port', `${port}`, '--nproc-per-node', '2', 'throws.ts'];
  const fixtures = fileURLToPath(new URL('../fixtures', import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, { cwd: fixtures, encoding: 'utf8' });
  expect(stderr).toMatch(new RegExp(`^ringwise run: port ${port} of 127.0.0.1 is in use\\. .+\\n$`));
  expect(stdout).toBe('');
  expect(status).toBe(1);
  other.close();
});

describe('a damaged file', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ringwise-failures-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('of digits is named, with what is wrong', async () => {
    const images = join(folder, 't10k-images-idx3-ubyte');
    const header = Buffer.from('00000803000027100000001c0000001c', 'hex');
    writeFileSync(images, Buffer.concat([header, Buffer.alloc(10_000)]));
    await writeIdx(join(folder, 't10k-labels-idx1-ubyte'), {
      data: new Uint8Array(10_000),
      shape: [10_000],
    });
    const example = fileURLToPath(new URL('../../../../examples/mnist.ts', import.meta.url));
    const { exitCode, stdout, stderr } = await runJob(1, example, ['--data', folder]);
    expect(stderr).toContain(
      '\n  DataError: readIdx: truncated; expected 7840016 bytes for Uint8Array [10000, 28, 28], got 10016 ' +
        `(${images}). Get the file again.`,
    );
    expect(stdout).toBe('');
    expect(exitCode).toBe(1);
  });

  it('of tensors is named, with what is wrong', async () => {
    const file = join(folder, 'model.safetensors');
    const header = Buffer.from('{"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}{');
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    writeFileSync(file, Buffer.concat([length, header, Buffer.alloc(16)]));
    const { exitCode, stderr } = await runJob(1, 'load-tensors.ts', [file]);
    expect(stderr).toContain(`\n  TensorError: safetensors: ${file}: the header is not JSON (`);
    expect(exitCode).toBe(1);
  });
});
