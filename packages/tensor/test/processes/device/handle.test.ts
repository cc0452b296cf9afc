// Tests tensors that borrow memory of another library or lend theirs to one. This package, or memory that the driver
// allocated, plays the other library.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { bufferSymbol } from '../../../src/core/protocol.ts';
import {
  arange,
  CudaStream,
  currentStream,
  fromHandle,
  full,
  memory,
  ones,
  synchronize,
  type Tensor,
  type TensorHandle,
  tensor,
  withStream,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { collect, collected } from '../../support/collected.ts';
import { cudaDevice } from '../../support/cuda-device.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Returns a handle that counts the calls of its `release`. */
function lent(of: Tensor): TensorHandle & { readonly released: number; readonly release: () => void } {
  const { release, ...said } = of.handle();
  const handle = {
    ...said,
    released: 0,
    release(): void {
      handle.released++;
      release!();
    },
  };
  return handle;
}

describe.each(cudaDevice === null ? (['cpu'] as const) : (['cpu', 'cuda'] as const))(
  'handles on %s',
  (device) => {
    test('say where a tensor lies, and give the same memory', () => {
      const x = arange(12).reshape([3, 4]).to(device);
      const view = x.at([1, 3], ':').t();
      const handle = view.handle();
      expect(handle).toMatchObject({ dtype: 'float32', shape: [4, 2], strides: [1, 4], count: 8 });
      expect(handle.device).toEqual({ kind: device, index: 0 });
      expect(handle.address).toBe(x.handle().address + 16n);
      const y = fromHandle(handle);
      expect([y.device, y.shape, y.strides, y.isContiguous]).toEqual([x.device, [4, 2], [1, 4], false]);
      expect(y.toArray()).toEqual(view.toArray());
      y.at(0).fill_(9); // the first column of the rows 1 and 2
      expect(x.at(':', 0).toArray()).toEqual([0, 9, 9]);
      x.at(2).fill_(7);
      expect(y.at(':', 1).toArray()).toEqual([7, 7, 7, 7]);
      expect(y.handle().address).toBe(handle.address);
    });

    test('hold every dtype, no elements, and no dimensions', () => {
      for (const dtype of ['float64', 'float16', 'bfloat16', 'int32', 'int64', 'uint8', 'bool'] as const) {
        const y = fromHandle(tensor([1, 0, 1], { dtype, device }).handle());
        expect([y.dtype, y.toArray()]).toEqual([dtype, [1, 0, 1]]);
      }
      expect(fromHandle(ones([0, 3], { device }).handle()).toArray()).toEqual([]);
      expect(fromHandle(full([], 4, { device }).handle()).item()).toBe(4);
      expect(fromHandle({ ...ones([4], { device }).handle(), shape: [2, 2], strides: null }).shape).toEqual([
        2, 2,
      ]);
    });

    test('take part in gradients and in collectives as any tensor', () => {
      const w = fromHandle(tensor([1, 2, 3], { device }).handle());
      w.requiresGrad = true;
      w.mul(w).sum().backward();
      expect(w.grad!.toArray()).toEqual([2, 4, 6]);
      expect(w[bufferSymbol]()).toMatchObject({
        dtype: 'float32',
        count: 3,
        device: { kind: device, index: 0 },
      });
    });

    test('keep the memory when its tensor is disposed, until they are released', async () => {
      const before = (await collected(device)).bytes;
      const x = full([1000], 3, { device });
      const handle = lent(x);
      x.dispose();
      expect(memory(device).bytes - before).toBe(4000);
      const y = fromHandle(handle);
      const z = y.at([10, 20]);
      expect(full([1000], 5, { device }).sum().item()).toBe(5000); // uses other memory
      y.dispose();
      expect(z.toArray()).toEqual(Array(10).fill(3));
      await turn();
      expect(handle.released).toBe(0);
      z.dispose();
      await turn();
      expect(handle.released).toBe(1);
      handle.release();
      expect(handle.released).toBe(2); // each handle was released once
    });

    test('are released when the collector finds what was made of them', async () => {
      const handle = lent(ones([100], { device }));
      (() => void fromHandle(handle).add(1))();
      for (let i = 0; i < 50 && handle.released === 0; i++) {
        collect();
        await turn();
      }
      expect(handle.released).toBe(1);
    });

    test('whose owner is forgotten give the memory back', async () => {
      const before = (await collected(device)).bytes;
      (() => {
        const x = ones([1_000_000], { device });
        x.handle();
        x.dispose();
      })();
      expect(memory(device).bytes - before).toBe(4_000_000);
      for (let i = 0; i < 50 && memory(device).bytes - before >= 3_000_000; i++) {
        collect();
        await turn();
      }
      expect(memory(device).bytes - before).toBeLessThan(3_000_000);
    });

    test('are taken once, and not after they were released', () => {
      const handle = ones([2], { device }).handle();
      fromHandle(handle);
      expect(() => fromHandle(handle)).toThrow(/this handle has been taken or released before/);
      const gone = ones([2], { device }).handle();
      gone.release!();
      gone.release!();
      expect(codeOf(() => fromHandle(gone))).toBe('ERR_TENSOR_ARGUMENT');
      const { release: _, ...kept } = ones([2], { device }).handle();
      expect([fromHandle(kept), fromHandle(kept)].map((each) => each.toArray())).toEqual([
        [1, 1],
        [1, 1],
      ]);
    });

    test('that are wrong are refused, and stay with their owner', () => {
      const whole = lent(ones([2, 3], { device }));
      const refused = (part: object): string => {
        try {
          fromHandle({ ...whole, ...part } as TensorHandle);
        } catch (error) {
          return (error as Error).message;
        }
        return 'taken';
      };
      expect(refused({ dtype: 'complex64' })).toBe(
        "fromHandle: expected dtype float32, float64, float16, bfloat16, int32, int64, uint8, bool, got 'complex64'.",
      );
      expect(refused({ shape: [3, 3] })).toMatch(/expected strides|reaches over 9 elements/);
      expect(refused({ strides: [4, 1] })).toBe(
        'fromHandle: shape [2, 3] with strides [4, 1] reaches over 7 elements, but the memory of the handle has 6.',
      );
      expect(refused({ strides: [3] })).toBe('fromHandle: expected strides to be 2 integers ≥ 0, got [3].');
      expect(refused({ strides: [-3, 1] })).toMatch(/expected strides to be 2 integers ≥ 0, got \[-3, 1\]/);
      expect(refused({ shape: [-1] })).toMatch(/sizes that are integers ≥ 0, got \[-1\]/);
      expect(refused({ shape: [2 ** 40, 2 ** 40], count: undefined, strides: null })).toMatch(/count/);
      expect(refused({ address: 1234 })).toMatch(/expected address to be a bigint .*, got 1234/);
      expect(refused({ address: whole.address + 2n })).toMatch(/a multiple of 4/);
      expect(refused({ address: 0n })).toMatch(/expected address not to be 0/);
      expect(refused({ owner: null })).toMatch(/expected owner to be an object/);
      expect(refused({ count: -1 })).toMatch(/expected count/);
      expect(refused({ stream: 1 })).toMatch(/expected stream to be a bigint, got 1/);
      expect(refused({ release: 1 })).toMatch(/expected release to be a function/);
      expect(refused({ device: undefined })).toMatch(/expected device to be \{ kind/);
      expect(refused({ device: { kind: 'rocm', index: 0 } })).toMatch(/got \{"kind":"rocm"/);
      expect(refused({ device: { kind: 'cpu', index: 1 } })).toMatch(/expected device/);
      expect(refused({ device: { kind: 'cuda', index: 99 } })).toMatch(/cuda:99: there is no such device/);
      expect(() => fromHandle(3 as never)).toThrow(/expected a handle \{ dtype, .*, got 3/);
      expect(whole.released).toBe(0);
      expect(() => ones([1], { requiresGrad: true }).handle()).toThrow(/Use detach\(\)\.handle\(\)/);
      const x = ones([1], { device });
      x.dispose();
      expect(codeOf(() => x.handle())).toBe('ERR_TENSOR_DISPOSED');
    });
  },
);

test('an array over host memory that was given back is empty', async () => {
  const handle = lent(ones([3]));
  const y = fromHandle(handle);
  const elements = y.dataSync();
  expect(elements).toEqual(Float32Array.of(1, 1, 1));
  y.dispose();
  expect(elements.length).toBe(0);
  await turn();
  expect(handle.released).toBe(1);
});

describe.skipIf(cudaDevice === null)(`handles and streams on ${cudaDevice?.name}`, () => {
  // By default, the software device runs work as late as it may, so a stream that misses a wait gives a wrong result
  // every time.
  test('work with the memory runs after the earlier work of the stream of the handle', () => {
    const side = new CudaStream('cuda');
    const handle = withStream(side, () => full([1000], 2, { device: 'cuda' }).add(3).handle());
    expect(handle.stream).toBe(side.handle);
    expect(fromHandle(handle).add(1).max().item()).toBe(6);
  });

  test('after a release, the stream of the handle waits for work with the memory', async () => {
    const side = new CudaStream('cuda');
    const x = withStream(side, () => full([1000], 2, { device: 'cuda' }));
    const { release: _, ...said } = withStream(side, () => x.handle());
    let released = 0;
    const y = fromHandle({ ...said, release: () => void released++ });
    const sum = y.add(1);
    y.dispose();
    await turn();
    expect(released).toBe(1);
    withStream(side, () => x.fill_(100));
    side.synchronize(); // also runs the sum that the stream waits for
    expect(sum.max().item()).toBe(3);
    currentStream('cuda').synchronize();
  });
});

const addon = fileURLToPath(
  new URL('../../../../../native/build/Release/device_memory.node', import.meta.url),
);
const isSoftware = process.env.RINGWISE_LIBCUDA?.endsWith('libsoftware_cuda.so') === true;
test.skipIf(cudaDevice === null || !isSoftware || !existsSync(addon))(
  'memory of the driver, which no tensor made',
  async () => {
    const library = createRequire(import.meta.url)(addon) as {
      allocate: (device: number, bytes: number) => ArrayBuffer;
      addressOf: (owner: ArrayBuffer) => bigint;
    };
    const owner = library.allocate(0, 32);
    new Float32Array(owner).set([1, 2, 3, 4, 5, 6, 7, 8]);
    let released = 0;
    const y = fromHandle({
      dtype: 'float32',
      shape: [2, 2],
      strides: [4, 2],
      device: { kind: 'cuda', index: 0 },
      address: library.addressOf(owner),
      owner,
      release: () => void released++,
    });
    expect(y.toArray()).toEqual([
      [1, 3],
      [5, 7],
    ]);
    y.mul_(10);
    synchronize('cuda');
    expect(Array.from(new Float32Array(owner))).toEqual([10, 2, 30, 4, 50, 6, 70, 8]);
    y.dispose();
    await turn();
    expect(released).toBe(1);
  },
);

test('without native kernels memory has no address', () => {
  const script = `
    import { ones } from ${JSON.stringify(fileURLToPath(new URL('../../../dist/index.js', import.meta.url)))};
    try { ones([2]).handle(); } catch (error) { process.stdout.write(error.code + ' ' + error.message); }`;
  const env = { ...process.env, RINGWISE_KERNELS: 'reference' };
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    env,
    encoding: 'utf8',
  });
  expect(said).toMatch(/^ERR_TENSOR_DEVICE reference kernels: memory has no address .*RINGWISE_KERNELS/);
});
