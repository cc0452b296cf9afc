// Tests pinned host memory. By default, the software device runs each copy as late as it may, so memory that is used
// again too early gives a wrong result every time.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import {
  CudaEvent,
  emptyCache,
  fromHost,
  full,
  memory,
  ones,
  pinArray,
  synchronize,
  tensor,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { cudaDevice, runsLate } from '../../support/cuda-device.ts';

const device = 'cuda';

describe.skipIf(cudaDevice === null)(`pinned memory of ${cudaDevice?.name}`, () => {
  test('holds copies of tensors, whole or views, and tensors that are made there', () => {
    const plain = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const pinned = plain.t().pinMemory();
    expect([plain.isPinned, pinned.isPinned, pinned.pinMemory() === pinned]).toEqual([false, true, true]);
    expect(pinned.toArray()).toEqual(plain.t().toArray());
    expect(pinned.narrow(0, 1, 2).isPinned).toBe(true);
    expect(pinned.add(1).isPinned).toBe(false);
    const made = [
      zeros([3], { pinMemory: true }),
      tensor([1n], { pinMemory: true }),
      zeros([0], { pinMemory: true }),
    ];
    expect(made.map((each) => [each.isPinned, each.device, each.dtype])).toEqual([
      [true, 'cpu', 'float32'],
      [true, 'cpu', 'int64'],
      [true, 'cpu', 'float32'],
    ]);
    expect(pinned.to(device).toArray()).toEqual(pinned.toArray());
  });

  test('a copy that does not block reads the memory later, and the memory is not reused before', () => {
    const count = 5000;
    const pinned = full([count], 1, { pinMemory: true });
    const there = pinned.to(device, { nonBlocking: true });
    pinned.fill_(2); // this forbidden write shows whether the copy has run yet
    pinned.dispose();
    const others = Array.from({ length: 4 }, () => full([count], 9, { pinMemory: true }));
    const value = there.min().item();
    expect(runsLate ? [2] : [1, 2]).toContain(value);
    expect(there.max().item()).toBe(value);
    for (const other of others) other.dispose();
  });

  test('is used again once its copies have ended', () => {
    const shape = [3, 1111];
    full(shape, 1, { pinMemory: true }).dispose();
    const before = memory();
    for (let i = 0; i < 20; i++) {
      const batch = full(shape, i, { pinMemory: true });
      const there = batch.to(device, { nonBlocking: true });
      batch.dispose();
      expect(there.max().item()).toBe(i);
      there.dispose();
    }
    // item() waits for the copy, so a buffer is free again in the next round, or, if the driver tells late, in the one
    // after.
    expect(memory().allocations - before.allocations).toBeLessThanOrEqual(2);
    expect(memory().bytes).toBe(before.bytes);
  });

  test('takes results of the device without waiting', () => {
    const back = full([100], 3, { device }).mul(2).to('cpu', { nonBlocking: true });
    const event = new CudaEvent(device);
    event.record();
    expect(back.isPinned).toBe(true);
    event.synchronize();
    expect(back.toArray()).toEqual(Array(100).fill(6));
  });

  test('gradients pass through', () => {
    const x = ones([4], { requiresGrad: true });
    x.pinMemory().to(device, { nonBlocking: true }).mul(3).sum().backward();
    expect(x.grad!.toArray()).toEqual([3, 3, 3, 3]);
  });

  test('holds arrays of others, as a DataLoader has them', () => {
    const labels = pinArray(BigInt64Array.of(5n, 6n));
    const image = pinArray(new Uint8Array([7, 8, 9]).subarray(1));
    expect([labels, image]).toEqual([BigInt64Array.of(5n, 6n), new Uint8Array([8, 9])]);
    const x = fromHost(labels);
    expect(x.isPinned).toBe(true);
    expect(x.narrow(0, 1, 1).to(device, { nonBlocking: true }).toArray()).toEqual([6]);
    expect(fromHost(Float32Array.of(1)).isPinned).toBe(false);
  });

  test('a tensor of the device is not pinned, and the error says what to do', () => {
    expect(() => ones([1], { device }).pinMemory()).toThrow(
      "pinMemory: expected a tensor in host memory, got one on cuda:0. Use .to('cpu').",
    );
    expect(codeOf(() => ones([1], { device, pinMemory: true }))).toBe('ERR_TENSOR_DEVICE');
    // The failed calls have left nothing that these would free or wait for.
    emptyCache();
    synchronize(device);
  });
});

test('without CUDA pinMemory says what is missing', () => {
  const script = `
    import { ones } from ${JSON.stringify(fileURLToPath(new URL('../../../dist/index.js', import.meta.url)))};
    try { ones([2]).pinMemory(); } catch (error) { process.stdout.write(error.code + ' ' + error.message); }`;
  const run = (env: Record<string, string>): string =>
    execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      env: { ...process.env, ...env },
      encoding: 'utf8',
    });
  expect(run({ RINGWISE_LIBCUDA: '/nowhere/libcuda.so.1' })).toMatch(
    /^ERR_TENSOR_DEVICE pinMemory: expected a CUDA device, which pins memory of the host; (cuda:0: there is no such device; .*nowhere|cuda: this build has no CUDA kernels)/,
  );
  expect(run({ RINGWISE_KERNELS: 'reference' })).toMatch(/^ERR_TENSOR_DEVICE /);
});
