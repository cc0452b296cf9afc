// Tests dataParallel() in programs of their own: threads that run the program once more, and how they fail and end.
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-data-parallel-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const tsx = fileURLToPath(import.meta.resolve('tsx/cli'));

/** The beginning of each program: a model, and a batch of `rows` rows. */
const setUp = `
  import { isMainThread } from 'node:worker_threads';
  import { dataParallel, ddp } from '${import.meta.resolve('@ringwise/ddp')}';
  import { crossEntropy, fromHost, generator, manualSeed, noGrad, scope } from '${import.meta.resolve('@ringwise/tensor')}';
  import { Linear, ReLU, Sequential } from '${import.meta.resolve('@ringwise/tensor/nn')}';
  import { SGD } from '${import.meta.resolve('@ringwise/tensor/optim')}';
  manualSeed(1);
  const net = new Sequential(new Linear(5, 8), new ReLU(), new Linear(8, 3));
  const draws = generator(3);
  function batch(rows) {
    const x = new Float32Array(rows * 5);
    draws.uniform(x, -1, 1);
    return [fromHost(x, [rows, 5]), Int32Array.from({ length: rows }, (_, i) => i % 3)];
  }
`;
/** Trains on batches of these sizes, and prints the losses and the sum of all parameters. */
const train = (sizes: readonly number[]) => `
  const optimizer = new SGD(net.parameters(), { lr: 0.1, momentum: 0.9 });
  const losses = ${JSON.stringify(sizes)}.map((rows) => scope(() => {
    const [x, y] = batch(rows);
    const loss = crossEntropy(model.forward(x), fromHost(y));
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss.item();
  }));
  console.log(JSON.stringify([...losses, ...net.parameters().flatMap((p) => [...p.dataSync()])]));
`;

interface Ended {
  readonly exitCode: number | string | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. Checks that it leaves no folder for meeting behind. */
async function run(source: string, ...options: string[]): Promise<Ended> {
  writeFileSync(join(folder, 'program.mjs'), setUp + source);
  const ended = await runArgv([join(folder, 'program.mjs'), ...options]);
  expect(readdirSync(folder).filter((name) => name.startsWith('ringwise-threads-'))).toEqual([]);
  return ended;
}

function runArgv(argv: readonly string[]): Promise<Ended> {
  const env = { ...process.env, TMPDIR: folder, RINGWISE_TIMEOUT_MS: '20000' };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      argv,
      { env, timeout: 240_000, killSignal: 'SIGKILL' },
      (error, stdout, stderr) => {
        resolve({ exitCode: error ? error.code : 0, stdout, stderr });
      },
    );
  });
}

async function numbers(source: string): Promise<number[]> {
  const { exitCode, stdout, stderr } = await run(source);
  expect([exitCode, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as number[];
}

describe('dataParallel', () => {
  // The last batches have fewer rows than there are threads, or do not divide.
  const sizes = [12, 12, 7, 2, 12, 1, 5];
  const program = (threads: number) =>
    `const model = await dataParallel(net, { threads: ${threads} }); ${train(sizes)} await model.close();`;

  it.each([1, 2, 3])('trains %i threads like a program without it', async (threads) => {
    const alone = await numbers(`const model = net; ${train(sizes)}`);
    const together = await numbers(program(threads));
    expect(together.length).toBe(alone.length);
    for (const [i, value] of together.entries()) expect(value).toBeCloseTo(alone[i]!, 5);
  });

  it('trains like ddp() on loopback ranks that divide the batch', async () => {
    const ranks = `
      import { loopbackGroups } from '${import.meta.resolve('@ringwise/collectives')}';
      const all = await Promise.all(loopbackGroups(2).map(async (group) => {
        manualSeed(1);
        const net = new Sequential(new Linear(5, 8), new ReLU(), new Linear(8, 3));
        const draws = generator(3);
        const model = await ddp(net, { group });
        const optimizer = new SGD(net.parameters(), { lr: 0.1, momentum: 0.9 });
        const losses = [];
        for (let step = 0; step < 4; step++) {
          const x = new Float32Array(12 * 5);
          draws.uniform(x, -1, 1);
          const rows = { from: 6 * group.rank, end: 6 * group.rank + 6 };
          const own = fromHost(x.slice(5 * rows.from, 5 * rows.end), [6, 5]);
          const y = Int32Array.from({ length: 12 }, (_, i) => i % 3).slice(rows.from, rows.end);
          const loss = crossEntropy(model.forward(own), fromHost(y));
          losses.push(loss.item());
          optimizer.zeroGrad();
          loss.backward();
          await model.finish();
          optimizer.step();
        }
        await group.close();
        return [losses, net.parameters().flatMap((p) => [...p.dataSync()])];
      }));
      const mean = all[0][0].map((loss, i) => (loss + all[1][0][i]) / 2);
      console.log(JSON.stringify([...mean, ...all[0][1]]));`;
    const byRanks = await numbers(ranks);
    const byThreads = await numbers(
      `const model = await dataParallel(net, { threads: 2 }); ${train([12, 12, 12, 12])} await model.close();`,
    );
    expect(byThreads.length).toBe(byRanks.length);
    for (const [i, value] of byThreads.entries()) expect(value).toBeCloseTo(byRanks[i]!, 5);
  });

  // Each program prints the gradients that a model has, which may not depend on the number of threads.
  it.each([
    ['gradients that accumulate', 'for (let i = 0; i < 4; i++) model.forward(x).square().sum().backward();'],
    [
      'a penalty on parameters',
      'net.parameters().reduce((sum, p) => sum.add(p.square().sum()), model.forward(x).sum()).backward();',
    ],
    [
      'a forward whose result is not used, and batches of one row',
      'model.forward(batch(1)[0]); model.forward(x).sum().add(model.forward(batch(1)[0]).square().sum()).backward();',
    ],
  ])('gives %s the gradients of one thread', async (_, steps) => {
    const program = (threads: number) => `
      const model = await dataParallel(net, { threads: ${threads} });
      const [x] = batch(6);
      ${steps}
      if (model.group.rank === 0) console.log(JSON.stringify(net.parameters().flatMap((p) => [...p.grad.dataSync()])));
      await model.close();`;
    const alone = await numbers(program(1));
    for (const threads of [2, 3]) {
      const together = await numbers(program(threads));
      expect(together.length).toBe(alone.length);
      for (const [i, value] of together.entries()) expect(value).toBeCloseTo(alone[i]!, 4);
    }
  });

  it('gives parameters that a backward does not use no gradient, as a program without it', async () => {
    const program = (model: string) => `
      net.forward = (x) => net.layers[0].forward(x); // leaves the last layer out
      const model = ${model};
      const optimizer = new SGD(net.parameters(), { lr: 0.1, weightDecay: 0.1 });
      for (let i = 0; i < 3; i++) {
        optimizer.zeroGrad();
        model.forward(batch(6)[0]).square().sum().backward();
        optimizer.step();
      }
      if (isMainThread) console.log(JSON.stringify(net.parameters().flatMap((p) => [...p.dataSync()])));
      await model.close?.();`;
    const alone = await numbers(program('net'));
    for (const threads of [1, 2]) {
      const together = await numbers(program(`await dataParallel(net, { threads: ${threads} })`));
      expect(together.length).toBe(alone.length);
      for (const [i, value] of together.entries()) expect(value).toBeCloseTo(alone[i]!, 4);
    }
  });

  it('refuses an input that requires a gradient', async () => {
    const { exitCode, stderr } = await run(`
      const model = await dataParallel(net, { threads: 2 });
      const [x] = batch(6);
      x.requiresGrad = true;
      noGrad(() => model.forward(x));
      model.forward(x);`);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain('forward: an input requires a gradient');
  });

  it('refuses what is no model before it starts threads, and takes one after that', async () => {
    const { exitCode, stdout, stderr } = await run(`
      const refused = [];
      for (const model of [undefined, null, 'net', {}])
        await dataParallel(model, { threads: 2 }).catch(({ code, message }) => refused.push(code, message.slice(0, 30)));
      const model = await dataParallel(net, { threads: 2 });
      await model.close();
      if (isMainThread) console.log([...new Set(refused)].join());`);
    expect([exitCode, stdout, stderr]).toEqual([0, 'ERR_DDP_INVALID,dataParallel: expected a model\n', '']);
  });

  it('shows the error of a thread while the main thread waits in a call', async () => {
    const { exitCode, stderr } = await run(`
      const model = await dataParallel(net, { threads: 2 });
      if (model.group.rank === 1) throw new Error('boom on a thread');
      for (;;) model.forward(batch(6)[0]);`);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain('dataParallel: thread 1 failed: Error: boom on a thread');
  });

  it('goes on alone after close(), although other threads would never end', async () => {
    const { exitCode, stdout } = await run(`
      const model = await dataParallel(net, { threads: 3 });
      await model.close();
      if (!isMainThread) for (;;);
      console.log('closed');`);
    expect([exitCode, stdout]).toEqual([0, 'closed\n']);
  });

  it('evaluates without gradients, and passes other arguments on', async () => {
    const source = `
      class Scaled extends Sequential { forward(x, by = 1) { return super.forward(x).mul(by); } }
      const model = await dataParallel(new Scaled(new Linear(5, 3)), { threads: 2 });
      const [x] = batch(5);
      const outputs = noGrad(() => model.forward(x, 2));
      const alone = noGrad(() => model.module.forward(x, 2));
      console.log(JSON.stringify([outputs.requiresGrad, outputs.shape, outputs.sub(alone).abs().max().item()]));
      await model.close();`;
    expect(await run(source)).toEqual({ exitCode: 0, stdout: '[false,[5,3],0]\n', stderr: '' });
  });

  it('runs TypeScript under tsx, with the same options in all threads', async () => {
    const program = join(folder, 'program.mts');
    writeFileSync(
      program,
      `import { dataParallel } from ${JSON.stringify(import.meta.resolve('@ringwise/ddp'))};
       import { Linear } from ${JSON.stringify(import.meta.resolve('@ringwise/tensor/nn'))};
       enum Size { Input = 3 }
       const model = await dataParallel(new Linear(Size.Input, 2), { threads: Number(process.argv[2]) });
       const sum = Float64Array.of(Number(process.argv[2]));
       await model.group.allReduce(sum);
       console.log(sum[0], process.argv[1] === import.meta.filename);
       await model.close();`,
    );
    expect(await runArgv([tsx, program, '2'])).toEqual({ exitCode: 0, stdout: '4 true\n', stderr: '' });
  });
});

describe('the threads of dataParallel', () => {
  it('end the process with the error of one of them', async () => {
    const { exitCode, stderr } = await run(`
      const model = await dataParallel(net, { threads: 2 });
      if (!isMainThread) throw new RangeError('thread 1 is wrong');
      await model.group.barrier();`);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain('thread 1 is wrong');
  });

  it('end with the main thread, and print no error of a lost thread', async () => {
    const { exitCode, stderr } = await run(`
      const model = await dataParallel(net, { threads: 6 });
      if (isMainThread) process.exit(3);
      await model.group.barrier();`);
    expect([exitCode, stderr]).toEqual([3, '']);
  });

  it('end with the main thread when it fails, although they wait for it in a call', async () => {
    const { exitCode, stderr } = await run(`
      process.env.RINGWISE_TIMEOUT_MS = '3600000';
      const model = await dataParallel(net, { threads: 2 });
      if (isMainThread) {
        await new Promise((resolve) => setTimeout(resolve, 500));
        throw new RangeError('the main thread is wrong');
      }
      model.forward(batch(4)[0]);
    `);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('RangeError: the main thread is wrong');
    expect(stderr).not.toContain('CollectiveError');
  });

  it('are refused if they give different data', async () => {
    const { exitCode, stderr } = await run(`
      const model = await dataParallel(net, { threads: 2 });
      const x = fromHost(Float32Array.from({ length: 20 }, () => Math.random()), [4, 5]);
      model.forward(x);`);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain('forward: thread 1 has another input than thread 0.');
  });

  it('are refused if they end before they call it', async () => {
    const { exitCode, stderr } = await run(`if (isMainThread) await dataParallel(net, { threads: 2 });`);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(
      'dataParallel: thread 1 ended with exit code 0 before it reached dataParallel().',
    );
  });

  it('end with a call that fails, so that a program that handles its error can end', async () => {
    const { exitCode, stdout } = await run(`
      import { workerData } from 'node:worker_threads';
      if (workerData?.ringwiseThread.rank === 1) process.exit();
      await dataParallel(net, { threads: 3 }).catch((error) => console.log(error.code));`);
    expect([exitCode, stdout.trim()]).toEqual([0, 'ERR_DDP_INVALID']);
  });

  it.each([
    [
      'a second call',
      `await dataParallel(net, { threads: 1 }); await dataParallel(net);`,
      'has called it before',
    ],
    [
      'no threads',
      `await dataParallel(net, { threads: 0 });`,
      'threads: expected an integer from 1 to 1024, got 0',
    ],
    [
      'an unknown option',
      `await dataParallel(net, { thread: 2 });`,
      "unknown option 'thread'; did you mean 'threads'",
    ],
    [
      'no file',
      `await dataParallel(net, { program: '/none.mjs' });`,
      'the file that all threads run, got /none.mjs',
    ],
    [
      'a result without rows',
      `const model = await dataParallel(Object.assign(net, { forward: () => 1 }), { threads: 1 }); model.forward(batch(3)[0]);`,
      'expected a tensor with one row for each of the 3 rows that this thread computes, got no tensor',
    ],
  ])('are refused with %s', async (_, source, message) => {
    const { exitCode, stderr } = await run(source);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(message);
  });
});
