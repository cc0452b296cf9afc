// Tests the threads of kernels: how many there are, that results do not depend on them, and how they end.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { fromHost, generator, getNumThreads, linear, setNumThreads, type Tensor } from '../../src/index.ts';

const atFirst = getNumThreads();
afterAll(() => setNumThreads(atFirst));

const noise = (...shape: number[]): Tensor => {
  const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
  generator(7).uniform(values, -1, 1);
  return fromHost(values, shape);
};

/** Runs a program that has the tensor library as `t`, with these variables. Resolves with its output when it ends. */
async function run(program: string, env: Record<string, string>): Promise<string> {
  const source = `import * as t from '@ringwise/tensor'; ${program}`;
  const { OMP_NUM_THREADS, LOCAL_WORLD_SIZE, ...others } = process.env;
  const options = { env: { ...others, ...env }, cwd: import.meta.dirname, timeout: 240_000 };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', source],
    options,
  );
  return stdout.trim();
}

describe('threads', () => {
  test('their number is set for all kernels and read back', () => {
    setNumThreads(3);
    expect(getNumThreads()).toBe(3);
    setNumThreads(1);
    expect(getNumThreads()).toBe(1);
  });

  test.each([0, 1.5, 257, -1, Number.NaN])('%s is refused', (count) => {
    expect(() => setNumThreads(count)).toThrow(/setNumThreads: expected an integer from 1 to 256, got/);
  });

  test('OMP_NUM_THREADS sets their number; without it, the ranks of a host share its cores', async () => {
    const print = 'console.log(t.getNumThreads())';
    expect(await run(print, { OMP_NUM_THREADS: '5', LOCAL_WORLD_SIZE: '2' })).toBe('5');
    expect(await run(print, { LOCAL_WORLD_SIZE: '10000' })).toBe('1');
  });

  test('a step gives the same bits with one thread and with several', () => {
    const bitsWith = (threads: number): Uint8Array => {
      setNumThreads(threads);
      const [x, w, b] = [noise(64, 784), noise(512, 784), noise(512)];
      w.requiresGrad = true;
      linear(x, w, b).gelu().softmax().sum().backward();
      const { buffer, byteOffset, byteLength } = w.grad!.dataSync();
      return new Uint8Array(buffer, byteOffset, byteLength).slice();
    };
    const alone = bitsWith(1);
    for (const threads of [2, 5]) expect(Buffer.compare(bitsWith(threads), alone)).toBe(0);
  });

  const multiply = 't.matmul(t.ones([512, 512]), t.ones([512, 512]))';

  test('do not keep a process alive', async () => {
    expect(await run(`${multiply}; console.log('end')`, { OMP_NUM_THREADS: '4' })).toBe('end');
  });

  test('outlive the worker thread that made them', async () => {
    const program = `
      import { Worker } from 'node:worker_threads';
      const work = "import('@ringwise/tensor').then((t) => { ${multiply}; })";
      for (let i = 0; i < 3; i++) {
        const worker = new Worker(work, { eval: true });
        const code = await new Promise((resolve) => worker.once('exit', resolve));
        console.log(code);
      }
      console.log(${multiply}.sum().item());`;
    expect((await run(program, { OMP_NUM_THREADS: '3' })).split('\n')).toEqual([
      '0',
      '0',
      '0',
      `${512 ** 3}`,
    ]);
  });
});
