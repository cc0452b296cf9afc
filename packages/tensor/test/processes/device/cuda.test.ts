// Compares tensors on a CUDA device with the same on the CPU.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { loadAddon } from '../../../src/backends/native/addon.ts';
import { allocateShareable } from '../../../src/core/memory/storage.ts';
import { bufferSymbol } from '../../../src/core/protocol.ts';
import {
  bce,
  cat,
  crossEntropy,
  type DeviceName,
  embedding,
  emptyCache,
  full,
  leakReport,
  linear,
  manualSeed,
  matmul,
  memory,
  ones,
  randn,
  scope,
  synchronize,
  type Tensor,
  tensor,
  trackLeaks,
  where,
  zeros,
} from '../../../src/index.ts';
import {
  AvgPool2d,
  BatchNorm2d,
  Conv2d,
  Flatten,
  Linear,
  MaxPool2d,
  ReLU,
  Sequential,
} from '../../../src/nn/index.ts';
import { AdamW, clipGradNorm, SGD } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { cudaDevice } from '../../support/cuda-device.ts';

const numbersOf = (t: Tensor): number[] => Array.from(t.to('cpu').dataSync() as Float32Array);

describe.skipIf(cudaDevice === null)(`tensors on CUDA (${cudaDevice?.name ?? 'no device'})`, () => {
  test('bounds of clamp lie there with the tensor, and get their gradients', () => {
    const [x, low] = [tensor([-2, 0, 2]), tensor([-1, -1, 3])].map((host) => host.to('cuda'));
    for (const leaf of [x!, low!]) leaf.requiresGrad = true;
    const out = x!.clamp(low!, 5);
    expect(numbersOf(out)).toEqual([-1, 0, 3]);
    out.sum().backward();
    expect([x!.grad!, low!.grad!].map((each) => numbersOf(each))).toEqual([
      [0, 1, 0],
      [1, 0, 1],
    ]);
    expect(codeOf(() => x!.detach().clamp(tensor(0)))).toBe('ERR_TENSOR_DEVICE');
  });

  test('values that are no probabilities make a loss of NaN, because a check would wait for the device', () => {
    const half = tensor([0.5, 0.5]).to('cuda');
    const wrong = tensor([0.5, 1.5]).to('cuda');
    expect(numbersOf(bce(wrong, half, { reduction: 'none' }))[1]).toBeNaN();
    expect(numbersOf(bce(half, wrong, { reduction: 'none' }))).toEqual([expect.closeTo(Math.LN2, 5), NaN]);
  });

  test('go there and back, as they are or as views, and are read from there', async () => {
    const host = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const there = host.to('cuda');
    expect([host.device, there.device, there.to('cuda:0') === there]).toEqual(['cpu', 'cuda:0', true]);
    expect(there.toArray()).toEqual(host.toArray());
    expect(there.t().to('cpu').toArray()).toEqual(host.t().toArray());
    expect(there.at(1).dataSync()).toEqual(Float32Array.of(4, 5, 6));
    expect(await there.t().at(1).data()).toEqual(Float32Array.of(2, 5));
    expect(there.at(1, 2).item()).toBe(6);
    expect(String(there)).toBe(String(host));
    expect(there.to('int64').to('cpu').toArray()).toEqual(host.toArray());
    expect(zeros([0, 3], { device: 'cuda' }).toArray()).toEqual([]);
    expect(host.t().to('cuda').toArray()).toEqual(host.t().toArray());
  });

  test('are made there', () => {
    expect(full([2], 7, { device: 'cuda' }).toArray()).toEqual([7, 7]);
    expect(tensor([1n, 2n], { device: 'cuda:0' }).device).toBe('cuda:0');
    manualSeed(3);
    const there = randn([5]).to('cuda');
    manualSeed(3);
    expect(there.toArray()).toEqual(randn([5]).toArray());
  });

  test('a graph may cross devices; gradients come back to where the leaf is', () => {
    const x = tensor([1, 2, 3], { requiresGrad: true });
    const y = x
      .to('cuda')
      .square()
      .mul(tensor([1, 10, 100], { device: 'cuda' }))
      .sum();
    y.to('cpu').mul(2).backward();
    expect(x.grad!.device).toBe('cpu');
    expect(x.grad!.toArray()).toEqual([4, 80, 1200]);
  });

  test('operands on different devices are refused with the names of both', () => {
    const [near, far] = [ones([2, 2]), ones([2, 2], { device: 'cuda' })];
    const labels = tensor([0, 1], { dtype: 'int32' });
    const calls: Record<string, () => unknown> = {
      add: () => near.add(far),
      matmul: () => matmul(far, near),
      where: () => where(near.gt(0), far, near),
      cat: () => cat([near, far]),
      linear: () => linear(near, far),
      crossEntropy: () => crossEntropy(far, labels),
      embedding: () => embedding(labels, far),
      add_: () => near.add_(far),
    };
    for (const [name, call] of Object.entries(calls)) {
      expect(call, name).toThrow(
        /expected tensors on one device, got (cpu and cuda:0|cuda:0 and cpu)\. Move/,
      );
      expect(codeOf(call)).toBe('ERR_TENSOR_DEVICE');
    }
    expect(near.copy_(far.mul(3)).toArray()).toEqual([
      [3, 3],
      [3, 3],
    ]);
  });

  test('calls that need host memory say so, and unknown devices are refused', () => {
    const far = ones([2], { device: 'cuda', requiresGrad: true });
    expect(() => far.bindGrad(new Float32Array(2))).toThrow(/bindGrad: expected a tensor in host memory/);
    expect(far[bufferSymbol]()).toMatchObject({ device: { kind: 'cuda', index: 0 }, host: null, count: 2 });
    for (const name of ['cuda:x', 'gpu', 'cuda:-1']) {
      expect(() => far.to(name as DeviceName)).toThrow(
        `to: expected 'cpu', 'cuda' or 'cuda:N', or a dtype (float32, float64, float16, bfloat16, int32, int64, uint8, bool), got '${name}'.`,
      );
    }
    expect(() => ones([1], { device: 'cuda:99' })).toThrow(
      /cuda:99: there is no such device; \d+ were found/,
    );
  });

  const train = (device: DeviceName, kind: 'sgd' | 'adamw') => {
    manualSeed(5);
    const model = new Sequential(new Linear(8, 16), new ReLU(), new Linear(16, 4)).to(device);
    const x = randn([32, 8]).to(device);
    const y = tensor(
      Int32Array.from({ length: 32 }, (_, i) => (i * 7) % 4),
      { device },
    );
    const options = { lr: 0.05, weightDecay: 0.01 };
    const optimizer =
      kind === 'sgd'
        ? new SGD(model.parameters(), { ...options, momentum: 0.9, nesterov: true })
        : new AdamW(model.parameters(), options);
    const losses: number[] = [];
    const step = (): void =>
      scope(() => {
        const loss = crossEntropy(model.forward(x), y);
        optimizer.zeroGrad();
        loss.backward();
        clipGradNorm(model.parameters(), 1);
        optimizer.step();
        losses.push(loss.item());
      });
    return { model, losses, step };
  };

  test.each(['sgd', 'adamw'] as const)('an MLP trains there as on the CPU, with %s and clipping', (kind) => {
    const [near, far] = [train('cpu', kind), train('cuda', kind)];
    for (let i = 0; i < 40; i++) {
      near.step();
      far.step();
    }
    for (const [i, loss] of near.losses.entries()) expect(far.losses[i]! / loss).toBeCloseTo(1, 4);
    expect(far.losses.at(-1)!).toBeLessThan(0.7 * far.losses[0]!);
    const state = near.model.stateDict();
    for (const [name, value] of Object.entries(far.model.stateDict())) {
      expect(value.device).toBe('cuda:0');
      const want = numbersOf(state[name]!);
      for (const [i, x] of numbersOf(value).entries()) expect(Math.abs(x - want[i]!)).toBeLessThan(1e-3);
    }
    far.model.loadStateDict(state);
    expect(far.model.parameters()[0]!.toArray()).toEqual(near.model.parameters()[0]!.toArray());
  });

  test('a convolutional net gives the same losses and gradients there', () => {
    const losses = (['cpu', 'cuda'] as const).map((device) => {
      manualSeed(7);
      const model = new Sequential(
        new Conv2d(2, 4, 3, { padding: 1 }),
        new BatchNorm2d(4),
        new ReLU(),
        new MaxPool2d(2),
        new Conv2d(4, 4, 3, { stride: 2, groups: 2 }),
        new AvgPool2d(2),
        new Flatten(),
        new Linear(4, 3),
      ).to(device);
      const x = randn([6, 2, 11, 12]).to(device);
      const y = tensor([0, 1, 2, 0, 1, 2], { dtype: 'int32', device });
      const optimizer = new SGD(model.parameters(), { lr: 0.05 });
      return Array.from({ length: 5 }, () =>
        scope(() => {
          const loss = crossEntropy(model.forward(x), y);
          optimizer.zeroGrad();
          loss.backward();
          optimizer.step();
          return loss.item();
        }),
      );
    });
    for (const [i, loss] of losses[0]!.entries()) expect(losses[1]![i]! / loss).toBeCloseTo(1, 4);
  });

  test('a training loop asks the device for memory in its first steps only', () => {
    const { step } = train('cuda', 'adamw');
    for (let i = 0; i < 3; i++) step();
    const [before, held] = [memory('cuda'), loadAddon().cudaMemory(0)];
    for (let i = 0; i < 20; i++) step();
    expect(memory('cuda')).toEqual(before);
    expect(loadAddon().cudaMemory(0)).toEqual(held);
  });

  test('memory is counted by device, and what is cached can be given back', () => {
    emptyCache();
    const before = [memory(), memory('cuda')];
    const far = zeros([1000], { device: 'cuda' });
    expect(memory('cuda').bytes).toBe(before[1]!.bytes + 4000);
    expect(memory().bytes).toBe(before[0]!.bytes);
    far.dispose();
    expect(memory('cuda').cachedBytes).toBe(before[1]!.cachedBytes + 4000);
    emptyCache();
    expect(memory('cuda').cachedBytes).toBe(0);
  });

  test('memory for collectives is counted like other memory, and goes back to the device', () => {
    const count = 3 << 18;
    emptyCache();
    const before = memory('cuda');
    trackLeaks();
    const large = allocateShareable('float32', count, 'cuda:0');
    const leaks = leakReport();
    trackLeaks(false);
    const bytes = 4 * count;
    expect(leaks.map((leak) => leak.bytes)).toEqual([bytes]);
    expect(memory('cuda')).toMatchObject({ tensors: before.tensors + 1, bytes: before.bytes + bytes });
    // The reservation is a multiple of the granularity that the driver recommends.
    expect(memory('cuda').reservedBytes).toBe(before.reservedBytes + (4 << 20));
    large.release();
    expect(memory('cuda')).toMatchObject({ bytes: before.bytes, cachedBytes: before.cachedBytes });
    for (let i = 0; i < 3; i++) emptyCache(); // the driver may notice late that the work has ended
    expect(memory('cuda').reservedBytes).toBe(before.reservedBytes);
  });

  test('a label that is out of range makes the next wait for results throw, once', async () => {
    const scores = zeros([2, 3], { device: 'cuda' });
    const bad = tensor([0, 3], { dtype: 'int64', device: 'cuda' });
    const loss = crossEntropy(scores, bad);
    expect(() => loss.item()).toThrow(/loss: a label on cuda:0 was out of range in an earlier operation/);
    expect(loss.item()).toBeNaN();
    crossEntropy(scores, bad);
    expect(() => synchronize('cuda')).toThrow(/a label on cuda:0/);
    crossEntropy(scores, bad);
    await expect(scores.data()).rejects.toThrow(/a label on cuda:0/);
    expect(await scores.data()).toEqual(new Float32Array(6));
  });

  test('too little memory: the error says what is live, cached and free, and later allocations succeed', () => {
    const bytes = cudaDevice!.memoryBytes;
    const held = zeros([1000], { device: 'cuda' });
    const call = (): Tensor => zeros([bytes / 4], { device: 'cuda' });
    expect(call).toThrow(
      /memory: not enough on cuda:0; asked for [\d.]+ MiB, [\d.]+ MiB are live, [\d.]+ MiB cached, [\d.]+ MiB free\./,
    );
    expect(codeOf(call)).toBe('ERR_TENSOR_MEMORY');
    // An allocation that does not fit frees cached memory, and then succeeds.
    const most = zeros([Math.floor(bytes * 0.15)], { device: 'cuda' });
    most.dispose();
    const more = zeros([Math.floor(bytes * 0.16)], { device: 'cuda' });
    expect(more.at(5).item()).toBe(0);
    more.dispose();
    held.dispose();
    emptyCache();
  });
});

describe('the driver', () => {
  const addon = createRequire(import.meta.url).resolve(
    `@ringwise/tensor-${process.platform}-${process.arch}/tensor.node`,
  );
  interface Info {
    readonly compiled: boolean;
    readonly reason: string;
    readonly devices: unknown[];
    readonly driver: string | null;
  }
  const infoWith = (library: string): Info => {
    const script = `process.stdout.write(JSON.stringify(require(${JSON.stringify(addon)}).cudaInfo()))`;
    const env = { ...process.env, RINGWISE_LIBCUDA: library };
    return JSON.parse(
      execFileSync(process.execPath, ['-e', script], { env, encoding: 'utf8', timeout: 240_000 }),
    );
  };

  test.runIf(cudaDevice !== null)(
    'streams get 32 hardware queues, or as many as the environment says',
    () => {
      const name = 'CUDA_DEVICE_MAX_CONNECTIONS';
      const script = `require(${JSON.stringify(addon)}).cudaInfo(); process.stdout.write(process.env.${name})`;
      const queues = (chosen: string | undefined): string =>
        execFileSync(process.execPath, ['-e', script], {
          env: { ...process.env, [name]: chosen },
          encoding: 'utf8',
          timeout: 240_000,
        });
      expect(queues(undefined)).toBe('32');
      expect(queues('4')).toBe('4');
    },
  );

  // A build without images has kernels only for the software device.
  test.skipIf(!infoWith('/nonexistent/libcuda.so.1').compiled)(
    'one that is not there, is no library, or is another library: no devices, and the reason names the path',
    () => {
      for (const path of ['/nonexistent/libcuda.so.1', addon.replace(/tensor\.node$/, 'package.json')]) {
        const info = infoWith(path);
        expect(info).toMatchObject({ devices: [], driver: null });
        expect(info.reason).toContain(path);
      }
      const other = infoWith(addon);
      expect(other.devices).toEqual([]);
      expect(other.reason).toMatch(
        /tensor\.node has no cuInit; CUDA 12\.0 \(driver 525\) or newer is needed/,
      );
    },
  );
});
