// Tests the native kernels at the best kernel level of this CPU, their memory, worker threads, and loading the addon.
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Kernels } from '../../../src/backends/kernels.ts';
import { loadAddon } from '../../../src/backends/native/addon.ts';
import { cudaInfo, loadNativeKernels } from '../../../src/backends/native/native.ts';
import type { Memory, Strided } from '../../../src/backends/operands.ts';
import type { HostArray } from '../../../src/core/dtype.ts';
import { collect } from '../../support/collected.ts';
import { bestLevel, contractAtLevel, levels } from '../../support/native-levels.ts';

const require = createRequire(import.meta.url);
const addonPath = require.resolve(`@ringwise/tensor-${process.platform}-${process.arch}/tensor.node`);

contractAtLevel(levels[bestLevel]!); // test/full/backends has the other levels

const dense = (memory: Memory): Strided => ({ memory, offset: 0, strides: null });
const fill = (k: Kernels, memory: Memory, value: number): void =>
  k.copy([memory.count], dense(memory), value);

/** Computes c[m, n] = a[m, k] · b[k, n]. */
function matmul(k: Kernels, c: Memory, a: Memory, b: Memory, m: number, n: number, inner: number): void {
  const [out, left, right] = [c, a, b].map((memory) => ({ ...dense(memory), strides: [] }));
  const steps = { aStep: inner, bStep: n, transA: false, transB: false, accumulate: false };
  k.matmul([], out!, left!, right!, { m, n, k: inner, ...steps });
}

describe('native memory', () => {
  let k: Kernels;
  beforeAll(() => {
    k = loadNativeKernels();
  });

  test('starts at a multiple of 64 bytes', () => {
    for (const count of [0, 1, 1000, 1 << 20]) {
      const memory = k.alloc('float32', count);
      expect(memory.host.byteOffset).toBe(loadAddon().padding(memory.host.buffer as ArrayBuffer));
      k.free(memory);
    }
  });

  test('an array that is still held keeps its values when its memory is freed and the collector runs', () => {
    const held: HostArray[] = [];
    for (let i = 0; i < 200; i++) {
      const memory = k.alloc('float32', 10_000);
      fill(k, memory, i);
      if (i % 10 === 0) held.push(memory.host);
      k.free(memory);
      if (i % 50 === 0) collect();
    }
    collect();
    for (const [i, host] of held.entries()) {
      expect(host.every((x: number | bigint) => x === i * 10)).toBe(true);
    }
  });

  test('memory that only its handle holds survives the collector', () => {
    const { handle } = k.adopt('float32', new Float32Array(1000).fill(7));
    for (let i = 0; i < 20; i++) {
      new Float32Array(1000).fill(i);
      collect();
    }
    const out = k.alloc('float32', 1000);
    k.copy([1000], dense(out), dense({ ...out, handle }));
    expect(out.host.every((x: number | bigint) => x === 7)).toBe(true);
    k.free(out);
    loadAddon().free(handle);
  });

  test('a loop that never yields does not pile up memory that it has freed', () => {
    const megabytes = (): number => process.memoryUsage.rss() / 2 ** 20;
    const before = megabytes();
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 400; i++) {
      const memory = k.alloc('float32', 1 << 20);
      fill(k, memory, i);
      k.free(memory);
      // 800 MB have been allocated by then. The collector frees in threads of its own, which a busy machine delays.
      if (i >= 200) least = Math.min(least, megabytes() - before);
    }
    expect(least).toBeLessThan(400);
  });

  test('counts what has not been freed', () => {
    const before = loadAddon().memory();
    const [a, b] = [k.alloc('float32', 100), k.alloc('int64', 10)];
    expect(loadAddon().memory()).toEqual({ handles: before.handles + 2, bytes: before.bytes + 480 });
    k.free(a);
    k.free(b);
    expect(loadAddon().memory()).toEqual(before);
  });

  test('computes in a SharedArrayBuffer', () => {
    const shared = new Float32Array(new SharedArrayBuffer(400));
    const memory = k.adopt('float32', shared as unknown as Float32Array);
    fill(k, memory, 3);
    expect(shared.every((x) => x === 3)).toBe(true);
    k.free(memory);
  });

  test('memory that has been freed, is too small or of another type is refused, not touched', () => {
    const [a, b, c] = [k.alloc('float32', 4), k.alloc('float32', 4), k.alloc('int32', 4)];
    const wrongIndex = k.adopt('int64', BigInt64Array.of(4n));
    k.free(a);
    for (const call of [
      () => k.free(a),
      () => k.copy([4], dense(b), dense(a)),
      () => k.copy([5], dense(b), dense(b)),
      () => k.copy([2, 2], dense(b), { ...dense(b), strides: [3, 3] }),
      () => k.copy([2], dense(b), { ...dense(b), strides: [-1] }),
      () => k.copy([4], { ...dense(b), offset: 1 }, 0),
      () => k.map('add', 'float32', [4], dense(b), dense(b), { ...dense(b), strides: [2] }),
      () => k.logSoftmax({ out: dense(b), a: dense(c) }, { rows: 2, cols: 2 }),
      () => k.logSoftmax({ out: dense(b), a: { ...dense(b), offset: 1 } }, { rows: 2, cols: 2 }),
      () =>
        k.lookup(
          { out: dense(b), a: dense(b), index: dense(wrongIndex) },
          {
            outer: 1,
            count: 1,
            size: 4,
            inner: 1,
            perElement: false,
          },
        ),
      () => matmul(k, b, b, b, 3, 3, 1),
      () => matmul(k, b, b, c, 1, 1, 1),
    ]) {
      expect(call).toThrow(expect.objectContaining({ code: 'ERR_TENSOR_KERNELS' }));
    }
    for (const memory of [b, c, wrongIndex]) k.free(memory);
  });
});

describe('worker threads', () => {
  /**
   * Writes a product without a batch to the scratch array: three operands with offset 0; then, from index 89, which is
   * `numbersAt` of src/backends/native/layout.ts, the sizes, the steps of rows and the flags.
   */
  const writes = `
    const write = (addon, handles, m, n, k) => {
      handles.forEach((handle, i) => addon.scratch.set([handle, 0], 2 * i));
      addon.scratch.set([m, n, k, k, n, 0, 0, 0], 89);
    };
  `;
  /** Multiplies and keeps the memory. Reports the product and the memory use of its instance of the addon. */
  const source = `
    const { parentPort, workerData: { addonPath, a, b, m, n, k } } = require('node:worker_threads');
    const addon = require(addonPath);
    ${writes}
    const c = new Float32Array(m * n);
    write(addon, [c, a, b].map((array) => addon.adopt(array, 0)), m, n, k);
    for (let i = 0; i < 50; i++) addon.matmul();
    parentPort.postMessage({ product: c, memory: addon.memory() });
  `;
  const sizes = { m: 37, n: 65, k: 500 };
  const random = (count: number): Float32Array =>
    Float32Array.from({ length: count }, () => Math.random() - 0.5);

  test('each has its own instance, computes the same bits, and may end with memory in use', async () => {
    const { m, n, k } = sizes;
    const [a, b] = [random(m * k), random(k * n)];
    const main = loadNativeKernels();
    const out = main.alloc('float32', m * n);
    matmul(main, out, main.adopt('float32', a), main.adopt('float32', b), m, n, k);
    const results = await Promise.all(
      Array.from({ length: 3 }, () => {
        const worker = new Worker(source, { eval: true, workerData: { addonPath, a, b, ...sizes } });
        let message: { product: Float32Array; memory: object };
        worker.on('message', (value) => {
          message = value;
        });
        return new Promise<typeof message>((resolve, reject) => {
          worker.on('error', reject);
          worker.on('exit', (code) => (code === 0 ? resolve(message) : reject(new Error(`exit ${code}`))));
        });
      }),
    );
    for (const { product, memory } of results) {
      expect(product).toEqual(new Float32Array(out.host as Float32Array));
      expect(memory).toEqual({ handles: 3, bytes: 4 * (m * n + m * k + k * n) });
    }
  });

  test('one that is ended in the middle of its work leaves the others alone', async () => {
    const busy = `
      const { parentPort, workerData: { addonPath } } = require('node:worker_threads');
      const addon = require(addonPath);
      ${writes}
      write(addon, [0, 1, 2].map(() => addon.adopt(new Float32Array(200 * 200), 0)), 200, 200, 200);
      parentPort.postMessage('busy');
      for (;;) addon.matmul();
    `;
    const worker = new Worker(busy, { eval: true, workerData: { addonPath } });
    await new Promise((resolve) => worker.once('message', resolve));
    await worker.terminate();
    const k = loadNativeKernels();
    const memory = k.alloc('float32', 100);
    fill(k, memory, 5);
    expect(memory.host[99]).toBe(5);
    k.free(memory);
  });
});

describe('loading', () => {
  const { platform, arch } = process;
  let folder = '';
  const inFolder = (): string => {
    folder = mkdtempSync(join(tmpdir(), 'ringwise-native-'));
    vi.stubEnv('RINGWISE_NATIVE_PATH', folder);
    return join(folder, 'tensor.node');
  };
  afterEach(() => {
    vi.unstubAllEnvs();
    Object.defineProperty(process, 'platform', { value: platform });
    Object.defineProperty(process, 'arch', { value: arch });
    if (folder) rmSync(folder, { recursive: true });
    folder = '';
  });

  test('looks into RINGWISE_NATIVE_PATH first', () => {
    const path = inFolder();
    copyFileSync(addonPath, path);
    loadAddon();
    expect(require.cache[path]?.loaded).toBe(true);
  });

  test('warns if that folder is not there or its addon cannot be loaded, and uses the installed one', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    const path = inFolder();
    loadAddon();
    expect(warn).not.toHaveBeenCalled(); // a folder with the addons of other packages
    writeFileSync(path, 'not an addon');
    loadAddon();
    vi.stubEnv('RINGWISE_NATIVE_PATH', '/nowhere');
    loadAddon();
    for (const tried of [path, '/nowhere/tensor.node'])
      expect(warn).toHaveBeenCalledWith(expect.stringContaining(`cannot load ${tried} (`), {
        code: 'RINGWISE_NATIVE_PATH',
      });
  });

  test('says every place where it looked, why that failed, and what to do', () => {
    const path = inFolder();
    writeFileSync(path, 'not an addon');
    Object.defineProperty(process, 'arch', { value: 'pdp11' });
    let message = '';
    try {
      loadNativeKernels();
    } catch (error) {
      expect(error).toMatchObject({ code: 'ERR_TENSOR_KERNELS' });
      ({ message } = error as Error);
    }
    expect(message).toContain(`${platform}-pdp11`);
    expect(message).toContain(`${path} (`);
    expect(message).toContain(`@ringwise/tensor-${platform}-pdp11/tensor.node (Cannot find module`);
    expect(message).toContain('RINGWISE_KERNELS=reference');
  });

  test('says that there is no addon for FreeBSD', () => {
    Object.defineProperty(process, 'platform', { value: 'freebsd' });
    expect(() => loadNativeKernels()).toThrow(/No release has one for this platform; build it/);
  });

  test('an unknown RINGWISE_CPU is refused, and is no reason for the slow kernels', async () => {
    vi.stubEnv('RINGWISE_KERNELS', '');
    vi.stubEnv('RINGWISE_CPU', 'sse9');
    expect(() => loadNativeKernels()).toThrow("RINGWISE_CPU: expected baseline, avx2, avx512, got 'sse9'");
    vi.resetModules();
    const { kernels } = await import('../../../src/backends/index.ts');
    expect(() => kernels()).toThrow("RINGWISE_CPU: expected baseline, avx2, avx512, got 'sse9'");
  });

  test('cudaInfo answers with devices, or with the reason why there are none', () => {
    const info = cudaInfo();
    expect(info.devices.length === 0).toBe(info.reason !== '');
    for (const device of info.devices) {
      expect(device).toEqual({
        name: expect.stringMatching(/./),
        memoryBytes: expect.any(Number),
        computeCapability: expect.stringMatching(/^\d+\.\d+$/),
        multiprocessors: expect.any(Number),
      });
    }
  });
});
