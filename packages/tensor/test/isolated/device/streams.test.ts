// Tests streams and events. By default, the software device runs work as late as it may, so a stream that misses a
// wait gives a wrong result every time.
import { describe, expect, test } from 'vitest';
import { bufferSymbol, gradParamsSymbol } from '../../../src/core/protocol.ts';
import {
  CudaEvent,
  CudaStream,
  currentStream,
  emptyCache,
  full,
  memory,
  ones,
  synchronize,
  tensor,
  withStream,
  zeros,
} from '../../../src/index.ts';
import { Linear } from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { cudaDevice } from '../../support/cuda-device.ts';

const device = 'cuda';

describe.skipIf(cudaDevice === null)(`streams on ${cudaDevice?.name}`, () => {
  test('work goes to the stream of the code that starts it, also across awaits', async () => {
    const [a, b] = [new CudaStream(device), new CudaStream(device)];
    expect(a.number).not.toBe(b.number);
    expect(a.handle).not.toBe(b.handle);
    expect(currentStream(device).number).toBe(0);
    const task = async (stream: CudaStream): Promise<number[]> => {
      const seen = [currentStream(device).number];
      for (let i = 0; i < 3; i++) {
        await stream.done();
        seen.push(currentStream(device).number);
      }
      return seen;
    };
    const seen = await Promise.all([
      withStream(a, () => task(a)),
      withStream(b, () => task(b)),
      task(currentStream(device)),
    ]);
    expect(seen).toEqual([a.number, b.number, 0].map((number) => [number, number, number, number]));
  });

  test('an event orders what one stream reads after what another one writes', async () => {
    const side = new CudaStream(device);
    const x = full([1000], 2, { device });
    side.wait(currentStream(device));
    const y = withStream(side, () => x.mul(3));
    const done = side.record();
    currentStream(device).wait(done);
    expect(y.add(1).sum().item()).toBe(7000);
    expect(done.isReached).toBe(true);
    await side.done();
  });

  test('memory that another stream still works with is not used again before it has ended', () => {
    const side = new CudaStream(device);
    const x = full([64], 5, { device });
    side.wait(currentStream(device));
    // On the software device, none of this work has run when x is freed and its memory is allocated again.
    const y = withStream(side, () => x.mul(2));
    x.dispose();
    const others = Array.from({ length: 8 }, () => full([64], 9, { device }));
    synchronize(device);
    expect(withStream(side, () => y.toArray())).toEqual(Array(64).fill(10));
    for (const other of others) other.dispose();
  });

  test('events measure, and are waited for', () => {
    const [before, after] = [new CudaEvent(device), new CudaEvent(device)];
    expect(before.isReached).toBe(true);
    before.record();
    const x = ones([256], { device }).add(1);
    after.record();
    after.synchronize();
    expect(after.isReached).toBe(true);
    expect(before.elapsedMs(after)).toBeGreaterThanOrEqual(0);
    expect(x.at(3).item()).toBe(2);
  });

  test('a copy to the device that does not block takes the elements at once', () => {
    const host = tensor(Float32Array.from({ length: 3_000_000 }, (_, i) => i % 1000));
    const there = host.to(device, { nonBlocking: true });
    host.fill_(-1);
    expect(there.at(999).item()).toBe(999);
    expect(there.to('cpu').max().item()).toBe(999);
    expect(memory(device).pinnedBytes).toBeGreaterThanOrEqual(12_000_000);
    const again = memory(device).pinnedBytes;
    for (let i = 0; i < 5; i++) {
      host.to(device, { nonBlocking: true }).dispose();
      synchronize(device);
    }
    // Pinned memory is used again after its copy has ended.
    expect(memory(device).pinnedBytes).toBeLessThanOrEqual(2 * again);
    emptyCache();
  });

  test('streams and events of other devices than CUDA devices that exist are refused', () => {
    expect(codeOf(() => new CudaStream('cpu'))).toBe('ERR_TENSOR_DEVICE');
    expect(() => new CudaEvent('cpu')).toThrow("event: expected a CUDA device, got 'cpu'.");
    expect(() => new CudaStream('cuda:99')).toThrow(/cuda:99: there is no such device/);
  });
});

describe.skipIf(cudaDevice === null)(`gradients in memory of others on ${cudaDevice?.name}`, () => {
  test('bindGrad takes views of one flat buffer, as a bucket gives them', () => {
    const layer = new Linear(3, 2).to(device);
    const params = layer[gradParamsSymbol]();
    const total = params.reduce((sum, param) => sum + param.value.count, 0);
    const flat = zeros([total], { device });
    let offset = 0;
    for (const param of params) {
      const { count } = param.value;
      param.bindGrad(flat.narrow(0, offset, count)[bufferSymbol]());
      offset += count;
    }
    const step = (): void => {
      const loss = layer.forward(ones([4, 3], { device })).sum();
      loss.backward();
    };
    step();
    expect(flat.toArray()).toEqual(Array.from({ length: total }, () => 4));
    step();
    expect(flat.toArray()).toEqual(Array.from({ length: total }, () => 8));
    for (const parameter of layer.parameters()) parameter.zeroGrad({ setToNull: false });
    expect(flat.sum().item()).toBe(0);
    expect(params[0]!.grad!.handle!.address).toBe(flat[bufferSymbol]().handle!.address);
    expect(params[0]!.value.device).toEqual({ kind: 'cuda', index: 0 });
  });

  test('bindGrad refuses memory of another size, dtype or device', () => {
    const x = ones([3], { device, requiresGrad: true });
    const view = zeros([3], { device })[bufferSymbol]();
    expect(() => x.bindGrad({ ...view, count: 2 })).toThrow(/bindGrad: expected an array of 3 elements/);
    expect(() => x.bindGrad({ ...view, dtype: 'float64' })).toThrow(/bindGrad/);
    expect(codeOf(() => x.bindGrad({ ...view, device: { kind: 'cuda', index: 1 } }))).toBe(
      'ERR_TENSOR_DEVICE',
    );
    expect(() => x.bindGrad(new Float32Array(3))).toThrow(/bindGrad: expected a tensor in host memory/);
  });
});
