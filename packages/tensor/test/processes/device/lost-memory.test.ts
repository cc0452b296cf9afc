// Tests device memory that a program loses without dispose(), on the software device or a GPU.
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { empty, type Tensor } from '../../../src/core/tensor.ts';
import { arange, compile, emptyCache, memory, ones, sort, trackLeaks } from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { cudaDevice } from '../../support/cuda-device.ts';

const isGpu = process.env.RINGWISE_TEST_GPU === '1';

/** Returns a tensor that takes a 32nd of the device's memory. Its elements are not initialised. */
const large = (): Tensor => empty('float32', [cudaDevice!.memoryBytes / 128], 'cuda:0');

/** Takes all memory of the device, and returns the tensors that hold it. */
function fill(): Tensor[] {
  const held: Tensor[] = [];
  for (let count = cudaDevice!.memoryBytes / 128; count >= 1024; count /= 2) {
    expect(() => {
      for (;;) held.push(empty('float32', [count], 'cuda:0'));
    }).toThrow(/not enough/);
  }
  return held;
}

describe.skipIf(cudaDevice === null)('device memory that a program loses', () => {
  afterEach(() => {
    trackLeaks(false);
    emptyCache();
  });

  test('is found when the device is full, without a turn of the event loop', () => {
    const kept = ones([1000], { device: 'cuda' });
    let sum = kept;
    for (let i = 0; i < 100; i++) {
      large();
      sum = sum.add(ones([1000], { device: 'cuda' }).neg()).add(2);
    }
    expect(sum.at(999).item()).toBe(101);
    expect(kept.at(0).item()).toBe(1);
    expect(memory('cuda').allocations).toBeGreaterThan(100);
  });

  test('is counted by the garbage collector, so that it runs before the device is full', async () => {
    emptyCache();
    let most = 0;
    for (let i = 0; i < 100; i++) {
      large();
      most = Math.max(most, memory('cuda').bytes);
      await setTimeout(isGpu ? 20 : 0); // a GPU allocates faster than the collector, which runs beside, can look
      // On a busy machine the collector's threads are late. One that does not run at all finds the device full.
      const isNearlyFull = () => memory('cuda').bytes > cudaDevice!.memoryBytes * 0.9;
      for (const endMs = performance.now() + 5_000; isNearlyFull() && performance.now() < endMs; )
        await setTimeout(10);
    }
    expect(most).toBeLessThan(cudaDevice!.memoryBytes * 0.95);
  });

  test('is not there if tensors are in use: the error lists the largest', () => {
    const half = Array.from({ length: 16 }, large);
    const fill = (): Tensor[] => Array.from({ length: 32 }, large);
    const elements = cudaDevice!.memoryBytes / 128;
    expect(fill).toThrow(
      new RegExp(
        `asked for .* The largest tensors there: \\d+ of ${elements} elements of float32 \\([\\d.]+ MiB\\)\\. RINGWISE_TENSOR_DEBUG=1 shows`,
      ),
    );
    trackLeaks();
    const traced = (function keepsTensors() {
      return Array.from({ length: 8 }, large);
    })();
    expect(fill).toThrow(/elements of float32 \([\d.]+ MiB, one made at .*\)\.$/);
    for (const tensor of [...half, ...traced]) tensor.dispose();
  });

  test('is freed for a kernel that finds no memory for its scratch; without any it is a typed error', () => {
    const count = 2 ** 18;
    const x = arange(count).to('cuda').neg();
    const spare = [x.add(0), x.to('int64'), empty('float32', [4 * count], 'cuda:0')];
    const held = fill();
    // Sorting takes the first two for its results. Its scratch fits only into the third, which this package has cached.
    for (const tensor of spare) tensor.dispose();
    const { values, indices } = sort(x);
    expect([values.at(0).item(), indices.at(0).item()]).toEqual([1 - count, count - 1]);
    held.push(...fill());
    values.dispose();
    indices.dispose();
    const run = (): unknown => sort(x);
    expect(codeOf(run)).toBe('ERR_TENSOR_MEMORY');
    expect(run).toThrow(/not enough on cuda:0.*The largest tensors there: /);
    for (const tensor of [x, ...held]) tensor.dispose();
  });

  test('need not be lost: a captured step on a device that was full takes what the device has cached', () => {
    const x = ones([4], { device: 'cuda' });
    const held = fill();
    for (const tensor of held) tensor.dispose();
    using step = compile((y: Tensor) => y.add(1), { device: 'cuda', warmUps: 1 });
    for (let i = 0; i < 3; i++) expect(step(x).at(3).item()).toBe(2);
    expect(step.isCaptured).toBe(true);
  });
});
