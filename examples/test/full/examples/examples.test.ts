// Runs each example as its first lines say. An example checks its own claim and ends with exit code 0 if it holds.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadSafetensors } from '@ringwise/tensor/safetensors';
import { hasTestDevice, isTestGpu, testData } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { example, ringwise, run, tsx } from '../../support/run.ts';

const realMnist = testData('mnist');

/** Returns the JSON in the last line of an example's output, without the prefix "[0] " of rank 0. */
function summaryOf(stdout: string): Record<string, unknown> {
  const last = stdout.trimEnd().split('\n').at(-1)!;
  expect(last).toMatch(/^\[0\] \{/);
  return JSON.parse(last.slice('[0] '.length)) as Record<string, unknown>;
}

describe('all-reduce.ts', () => {
  it.each([1, 4])('gives the sum to all of %i ranks, which print in order', async (size) => {
    const argv = [ringwise, 'run', '--standalone', '--nproc-per-node', `${size}`, example('all-reduce.ts')];
    const sum = (size * (size + 1)) / 2;
    const lines = Array.from({ length: size }, (_, rank) => `[${rank}] rank ${rank} of ${size} has ${sum}\n`);
    expect(await run(argv)).toEqual({ exitCode: 0, stdout: lines.join(''), stderr: '' });
  });

  it('needs no launcher', async () => {
    const stdout = 'rank 0 of 1 has 1\n';
    expect(await run([tsx, example('all-reduce.ts')])).toEqual({ exitCode: 0, stdout, stderr: '' });
  });
});

/** Runs an example on `size` ranks, checks that it succeeded, and returns the lines that it wrote to stdout. */
async function linesOf(name: string, size: number): Promise<string[]> {
  const argv = [ringwise, 'run', '--standalone', '--nproc-per-node', `${size}`, example(name)];
  const { exitCode, stdout, stderr } = await run(argv);
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
  return stdout.trimEnd().split('\n');
}

describe('all-gather.ts', () => {
  it('gives all parts to all of 3 ranks, in a list and of different lengths', async () => {
    const all = '[1,2] [3,4] [5,6], and 0,1,1,2,2,2';
    expect(await linesOf('all-gather.ts', 3)).toEqual(
      [0, 1, 2].map((rank) => `[${rank}] rank ${rank} has ${all}`),
    );
  });

  it('runs on one rank', async () => {
    expect(await linesOf('all-gather.ts', 1)).toEqual(['[0] rank 0 has [1,2], and 0']);
  });
});

describe('own-autograd.ts', () => {
  it.each([1, 3])('trains %i ranks as one process', async (size) => {
    expect(await linesOf('own-autograd.ts', size)).toEqual([`[0] ${size} ranks: off by less than 1e-5`]);
  });
});

describe('jax-js.ts', () => {
  it.each([1, 3])('trains %i ranks as one process', async (size) => {
    const claim = `[0] ${size} ranks: the same bits on all, off by less than 1e-5`;
    expect(await linesOf('jax-js.ts', size)).toEqual([claim]);
  });
});

describe('tfjs/main.ts', () => {
  it.each([1, 3])('trains %i ranks with model.fit() as one process', async (size) => {
    const [losses, result] = await linesOf('tfjs/main.ts', size);
    expect(losses).toMatch(/^\[0\] loss 2\.\d{3} /);
    expect(result).toBe(`[0] ${size} ranks: the same bits on all, and the weights of one process to 1e-5`);
  });
});

describe('parameter-server.ts', () => {
  /** Checks the table of costs, and returns the updates and gradients of both modes. */
  const costsOf = (lines: readonly string[], workers: number): number[][] => {
    expect(lines[0]).toBe(`${workers} workers, 0.2 s for each mode, loss 1.973 at first`);
    return ['synchronous', 'asynchronous'].map((mode, i) => {
      const number = '([\\d.e-]+)';
      const costs = [...Array<string>(3).fill(number), `${number} \\((\\d+)\\)`, '136', number].join(' +');
      const match = new RegExp(`^${mode} +${costs}$`).exec(lines[2 + i]!);
      expect(match, lines.join('\n')).not.toBeNull();
      return match!.slice(1).map(Number);
    });
  };

  it('tells what both modes cost with 2 workers', async () => {
    const argv = [
      ringwise,
      'run',
      '--nproc-per-node',
      '3',
      example('parameter-server.ts'),
      '--seconds',
      '0.2',
    ];
    const { exitCode, stdout, stderr } = await run(argv);
    expect([exitCode, stderr]).toEqual([0, '']);
    const lines = stdout.trimEnd().split('\n');
    const [sync, async] = costsOf(
      lines.map((line) => line.slice('[0] '.length)),
      2,
    );
    // A round of the synchronous mode takes one gradient of each worker, all of the newest parameters.
    expect(sync!.slice(0, 2)).toEqual([sync![0], 2 * sync![0]!]);
    expect(sync!.slice(3, 5)).toEqual([0, 0]);
    expect(async![0]).toBe(async![1]);
    expect(async![3]).toBeGreaterThan(0);
    expect(async![4]).toBeGreaterThan(0);
  });

  it('needs no launcher', async () => {
    const { exitCode, stdout, stderr } = await run([tsx, example('parameter-server.ts'), '--seconds', '0.2']);
    expect([exitCode, stderr]).toEqual([0, '']);
    costsOf(stdout.trimEnd().split('\n'), 2);
  });
});

describe('data-parallel.ts', () => {
  it('has the losses of one thread on two threads, and on two processes', async () => {
    const few = ['--steps', '10', '--batch', '64', '--json'];
    const lossesOf = async (...argv: string[]): Promise<number[]> => {
      const { exitCode, stdout, stderr } = await run([...argv, ...few]);
      expect([exitCode, stderr]).toEqual([0, '']);
      const last = stdout.trimEnd().split('\n').at(-1)!;
      return (JSON.parse(last.slice(last.indexOf('{'))) as { losses: number[] }).losses;
    };
    const program = example('data-parallel.ts');
    const one = await lossesOf(tsx, program, '--threads', '1');
    const two = await lossesOf(tsx, program, '--threads', '2');
    const processes = await lossesOf(ringwise, 'run', '--nproc-per-node', '2', program, '--ddp');
    expect(one.length).toBe(10);
    for (const [step, loss] of one.entries()) {
      expect(two[step]).toBeCloseTo(loss, 4);
      expect(processes[step]).toBeCloseTo(loss, 4);
    }
  });
});

describe('gather.ts', () => {
  it('gives the table and the reports to the root only', async () => {
    expect((await linesOf('gather.ts', 3)).sort()).toEqual([
      '[0] rank 0: table null, no reports',
      '[1] rank 1: table null, no reports',
      '[2] rank 2: table 0,0,1,1,2,4, 3 reports',
    ]);
  });
});

describe('coalesced.ts', () => {
  it('needs one operation for 200 buffers', async () => {
    const time = / {2}median +\d+ µs of 31 \(\d+ to \d+\)$/;
    const lines = await linesOf('coalesced.ts', 2);
    expect(lines.filter((line) => time.test(line)).length).toBe(6);
    const report = [
      'oneByOne     200 operations',
      'joinedByHand   1 operations',
      'inOneCall      1 operations',
    ];
    expect(lines.map((line) => line.replace(time, ''))).toEqual(
      [0, 1].flatMap((rank) => [`[${rank}] rank ${rank}`, ...report.map((line) => `[${rank}]   ${line}`)]),
    );
  });
});

describe('ring-vs-parameter-server.ts', () => {
  it('moves the bytes of the formulas, and draws them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ringwise-examples-'));
    try {
      const svg = join(folder, 'plot.svg');
      const argv = [ringwise, 'run', '--nproc-per-node', '3', example('ring-vs-parameter-server.ts')];
      const { exitCode, stdout, stderr } = await run([...argv, '--repeats', '3', '--svg', svg]);
      expect([exitCode, stderr]).toEqual([0, '']);
      const [bandwidth, , ...rows] = stdout.trimEnd().split('\n');
      expect(bandwidth).toMatch(/^\[0\] K = 1.68 MB. B = [\d.]+ GB\/s: /);
      expect(rows.pop()).toBe(`[0] plot: ${svg}`);
      const cells = rows.map((row) => row.split(/ {2,}/));
      expect(cells.map((row) => row.slice(0, 5))).toEqual([
        ['[0] 2', 'parameter server', '2 (N−1) K', '2.00 K', '2.00 K'],
        ['[0] 2', 'ring', '2 (N−1) K/N', '1.00 K', '1.00 K'],
        ['[0] 3', 'parameter server', '2 (N−1) K', '4.00 K', '4.00 K'],
        ['[0] 3', 'ring', '2 (N−1) K/N', '1.33 K', '1.33 K'],
      ]);
      for (const row of cells) expect(row.slice(5).join(' ')).toMatch(/^[\d.]+ ms [\d.]+ ms$/);
      const drawing = readFileSync(svg, 'utf8');
      expect(drawing).toMatch(/^<svg .*<title>Sum over N ranks.*<\/svg>\n$/s);
      expect(drawing).not.toMatch(/NaN|undefined|Infinity/);
      // Two ways, each measured on 2 and 3 ranks, in both panels; and two in the legend.
      expect(drawing.match(/<circle/g)?.length).toBe(2 * 2 * 2 + 2);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('says that one rank is too few', async () => {
    expect(await linesOf('ring-vs-parameter-server.ts', 1)).toEqual([
      '[0] one rank has nobody to sum with: start at least two',
    ]);
  });
});

describe('cnn.ts', () => {
  const accuracyFrom = async (...options: string[]): Promise<number> => {
    const { exitCode, stdout, stderr } = await run([tsx, example('cnn.ts'), ...options]);
    expect([exitCode, stderr]).toEqual([0, '']);
    return Number(/accuracy (0\.\d+) on 2000 held-out digits, \1 after loading\n$/.exec(stdout)?.[1]);
  };

  it('learns to read drawn digits, and keeps what it learnt in a file', async () => {
    expect(await accuracyFrom()).toBeGreaterThan(0.95);
  });

  it('learns on two ranks that share batch norm', async () => {
    expect((await linesOf('cnn.ts', 2)).at(-1)).toMatch(
      /^\[0\] accuracy (0\.9[5-9]\d*) on 2000 held-out digits, \1 after loading$/,
    );
  });

  it.skipIf(realMnist === null)('learns to read handwritten digits', async () => {
    expect(await accuracyFrom('--data', realMnist!)).toBeGreaterThan(0.95);
  });
});

describe('pipeline.ts', () => {
  it.each([
    [1, '1 stages with 4 layers'],
    [3, '3 stages with 1 + 1 + 2 layers'],
  ])('trains on %i ranks as one process does', async (size, stages) => {
    const [first, losses, result] = await linesOf('pipeline.ts', size);
    expect([first, result]).toEqual([`[0] ${stages}`, '[0] the same bits as in one process']);
    expect(losses).toMatch(/^\[0\] loss \d\.\d{4} → \d\.\d{4}$/);
  });
});

describe('contrastive.ts', () => {
  it.each([1, 3])('learns on %i ranks as one process does with all samples', async (size) => {
    const [losses, gaps, without] = await linesOf('contrastive.ts', size);
    expect(losses).toMatch(new RegExp(`^\\[0\\] ${size} × 8 samples: loss \\d\\.\\d{3} to 0\\.\\d{3}$`));
    expect(gaps).toMatch(/^\[0\] from one process differ: losses \S+, gradients \S+, parameters \S+$/);
    expect(without).toMatch(/differ by 0\.\d\d$/);
  });
});

describe('mnist.ts', () => {
  const mnist = [ringwise, 'run', example('mnist.ts'), '--json'];

  it('learns to read drawn digits', async () => {
    const { exitCode, stdout, stderr } = await run([...mnist, '--epochs', '2']);
    expect(stderr).toBe('');
    const { accuracy, ...rest } = summaryOf(stdout);
    expect(accuracy).toBeGreaterThanOrEqual(0.9);
    expect(rest).toEqual({ worldSize: 1, samplesPerSecond: expect.any(Number), seconds: expect.any(Number) });
    expect(exitCode).toBe(0);
  });

  it('fails if it has not learned', async () => {
    const { exitCode, stdout, stderr } = await run([...mnist, '--epochs', '0']);
    expect(summaryOf(stdout).accuracy).toBeLessThan(0.5);
    expect(stderr).toContain('Error: expected an accuracy of at least 0.9, got 0.');
    expect(exitCode).toBe(1);
  });
});

it(`mnist-ddp.ts learns to read ${realMnist !== null ? 'real' : 'drawn'} digits on two ranks that stay in sync`, async () => {
  const argv = [ringwise, 'run', '--nproc-per-node', '2', example('mnist-ddp.ts'), '--json', '--epochs', '4'];
  const data = realMnist !== null ? ['--data', realMnist] : [];
  const { exitCode, stdout, stderr } = await run([...argv, ...data]);
  expect(stderr).toBe('');
  // Only rank 0 prints.
  expect(stdout.split('\n').filter((line) => line !== '' && !line.startsWith('[0] '))).toEqual([]);
  const losses = [...stdout.matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));
  expect(losses.at(-1)).toBeLessThan(losses[0]! / 2);
  expect(stdout).toContain('replicas in sync: 2 ranks hold the same bits');
  const { accuracy, samplesPerSecond, seconds, ...rest } = summaryOf(stdout);
  expect(accuracy).toBeGreaterThanOrEqual(0.9);
  expect(samplesPerSecond).toBeCloseTo((8000 * 4) / (seconds as number), -1);
  expect(rest).toEqual({ worldSize: 2, inSync: true });
  expect(exitCode).toBe(0);
});

it('mnist-elastic.ts learns on three ranks of an elastic job', async () => {
  const argv = [ringwise, 'run', '--elastic', '--nproc-per-node', '3', example('mnist-elastic.ts'), '--json'];
  const { exitCode, stdout, stderr } = await run([...argv, '--epochs', '4']);
  expect(stderr).toBe('');
  expect(stdout).toContain('replicas in sync: 3 ranks hold the same bits');
  const { accuracy, worldSize, inSync } = summaryOf(stdout);
  expect(accuracy).toBeGreaterThanOrEqual(0.9);
  expect({ worldSize, inSync }).toEqual({ worldSize: 3, inSync: true });
  expect(exitCode).toBe(0);
});

it.each([1, 2])('cifar-resnet.ts learns to tell classes of pictures apart on %i ranks', async (size) => {
  const lines = await linesOf('cifar-resnet.ts', size);
  const losses = lines.slice(0, -1).map((line) => Number(/loss ([\d.]+)$/.exec(line)![1]));
  expect(losses).toHaveLength(4);
  expect(losses.at(-1)).toBeLessThan(losses[0]! / 2);
  const [, accuracy] = /accuracy ([\d.]+) on 512 held-out pictures, in sync: true$/.exec(lines.at(-1)!)!;
  expect(Number(accuracy)).toBeGreaterThanOrEqual(0.9);
});

describe('multigpu.ts', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ringwise-examples-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('starts its ranks itself, prints the lines of the tutorial, and writes a checkpoint', async () => {
    const argv = [tsx, example('multigpu.ts'), '2', '1', '--nprocs', '2', '--samples', '4096'];
    const { exitCode, stdout, stderr } = await run(argv, folder);
    expect(stderr).toBe('');
    const lines = stdout.trimEnd().split('\n');
    const [, first, last] = /^loss ([\d.]+) → ([\d.]+)$/.exec(lines.pop()!)!.map(Number);
    expect(last).toBeLessThan(first!);
    expect(lines.sort()).toEqual([
      'Epoch 0 | Training checkpoint saved at checkpoint.safetensors',
      'Epoch 1 | Training checkpoint saved at checkpoint.safetensors',
      '[GPU0] Epoch 0 | Batchsize: 32 | Steps: 64',
      '[GPU0] Epoch 1 | Batchsize: 32 | Steps: 64',
      '[GPU1] Epoch 0 | Batchsize: 32 | Steps: 64',
      '[GPU1] Epoch 1 | Batchsize: 32 | Steps: 64',
    ]);
    expect(exitCode).toBe(0);

    const tensors = await loadSafetensors(join(folder, 'checkpoint.safetensors'));
    const shapes = Object.entries(tensors).map(([name, { shape }]) => [name, [...shape]]);
    expect(Object.fromEntries(shapes)).toEqual({
      '0.weight': [512, 784],
      '0.bias': [512],
      '2.weight': [512, 512],
      '2.bias': [512],
      '4.weight': [10, 512],
      '4.bias': [10],
    });
    for (const tensor of Object.values(tensors)) {
      expect((tensor.dataSync() as Float32Array).every(Number.isFinite)).toBe(true);
      tensor.dispose();
    }
  });

  it('says how it is used', async () => {
    const none = await run([tsx, example('multigpu.ts')], folder);
    const missing = 'multigpu.ts: expected TOTAL_EPOCHS and SAVE_EVERY, got nothing. See --help.\n';
    expect(none).toEqual({ exitCode: 2, stdout: '', stderr: missing });
    const wrong = await run([tsx, example('multigpu.ts'), '2', 'often'], folder);
    const often =
      "multigpu.ts: SAVE_EVERY: expected a whole number of at least 1, got 'often'. See --help.\n";
    expect(wrong).toEqual({ exitCode: 2, stdout: '', stderr: often });
    const help = await run([tsx, example('multigpu.ts'), '--help'], folder);
    expect(help).toMatchObject({ exitCode: 0, stderr: '' });
    expect(help.stdout).toMatch(
      /^Trains with one process .* examples\/multigpu\.ts TOTAL_EPOCHS SAVE_EVERY .*\n {2}--samples /s,
    );
  });

  it('tells the size of the batches that it trains on', async () => {
    const argv = [tsx, example('multigpu.ts'), '1', '1', '--nprocs', '2', '--samples', '20'];
    const { exitCode, stdout } = await run(argv, folder);
    expect(stdout).toContain('[GPU0] Epoch 0 | Batchsize: 10 | Steps: 1\n');
    expect(stdout).toContain('[GPU1] Epoch 0 | Batchsize: 10 | Steps: 1\n');
    expect(exitCode).toBe(0);
  });

  it.skipIf(!hasTestDevice || isTestGpu)('trains on the devices where there are some', async () => {
    const program = join(folder, 'program.mts');
    writeFileSync(
      program,
      `import main from ${JSON.stringify(example('multigpu.ts'))};
       import { memory } from ${JSON.stringify(import.meta.resolve('@ringwise/tensor'))};
       import { spawn } from ${JSON.stringify(import.meta.resolve('@ringwise/launch'))};
       export default async (rank: number, options: never) => {
         await main(rank, options);
         return memory('cuda:' + rank).peakBytes > 0;
       };
       if (process.env.RANK === undefined) {
         const options = { totalEpochs: 1, saveEvery: 1, batchSize: 8, samples: 32, hasGpus: true };
         console.log(await spawn(new URL(import.meta.url), { nprocs: 2, args: [options] }));
       }`,
    );
    const device = fileURLToPath(
      new URL('../../../../native/build/Release/libsoftware_cuda.so', import.meta.url),
    );
    const env = { ...process.env, RINGWISE_LIBCUDA: device, RINGWISE_LIBNCCL: device } as Record<
      string,
      string
    >;
    const { exitCode, stdout, stderr } = await run([tsx, program], folder, env);
    expect(stdout, stderr).toContain('[ true, true ]');
    expect(exitCode).toBe(0);
  });
});
