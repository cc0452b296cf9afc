// Compares networks on a CUDA device with the same on the CPU: norms, attention, dropout, random numbers, a small GPT.
import { describe, expect, test } from 'vitest';
import {
  adaptiveAvgPool2d,
  arange,
  autocast,
  avgPool2d,
  batchNorm,
  bernoulli,
  conv2d,
  crossEntropy,
  type Device,
  type DeviceName,
  type DType,
  dropout,
  einsum,
  layerNorm,
  logSoftmax,
  manualSeed,
  matmul,
  maxPool2d,
  memory,
  mseLoss,
  multinomial,
  nllLoss,
  norm,
  oneHot,
  rand,
  randint,
  randn,
  randperm,
  rmsNorm,
  roll,
  type Shape,
  scaledDotProductAttention,
  scope,
  softmax,
  type Tensor,
  tensor,
} from '../../../src/index.ts';
import {
  BatchNorm2d,
  Dropout,
  Embedding,
  LayerNorm,
  Linear,
  Module,
  TransformerBlock,
} from '../../../src/nn/index.ts';
import { AdamW } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { cudaDevice } from '../../support/cuda-device.ts';
import { checkHalfSoftmax, halfSoftmaxCases } from '../../support/half-softmax.ts';

const valuesOf = (t: Tensor): number[] => Array.from(t.to('float64').to('cpu').dataSync() as Float64Array);

function expectNear(got: Tensor, want: Tensor, tolerance: number): void {
  expect([got.shape, got.dtype]).toEqual([want.shape, want.dtype]);
  const [x, y] = [valuesOf(got), valuesOf(want)];
  const far = x.findIndex(
    (value, i) => value !== y[i] && !(Math.abs(value - y[i]!) <= tolerance * Math.max(1, Math.abs(y[i]!))),
  );
  if (far >= 0) expect.fail(`element ${far}: expected ${y[far]}, got ${x[far]}`);
}

class Gpt extends Module {
  readonly tokens = new Embedding(17, 16);
  readonly places = new Embedding(12, 16);
  readonly drop: Dropout;
  readonly first: TransformerBlock;
  readonly second: TransformerBlock;
  readonly norm = new LayerNorm(16);
  readonly head = new Linear(16, 17, { bias: false });

  constructor(rate: number) {
    super();
    this.drop = new Dropout(rate);
    this.first = new TransformerBlock(16, 2, { causal: true, dropout: rate });
    this.second = new TransformerBlock(16, 2, { causal: true, dropout: rate });
  }

  forward(input: Tensor): Tensor {
    const at = arange(0, input.shape[1]!, 1, { dtype: 'int64', device: input.device });
    const x = this.drop.forward(this.tokens.forward(input).add(this.places.forward(at)));
    return this.head.forward(this.norm.forward(this.second.forward(this.first.forward(x))));
  }
}

/** Returns the losses of `steps` steps that follow from one seed. */
function losses(device: DeviceName, rate: number, steps: number): number[] {
  manualSeed(11);
  const model = new Gpt(rate).to(device);
  const x = randint(0, 17, [4, 12], { device });
  const y = randint(0, 17, [4 * 12], { device });
  const optimizer = new AdamW(model.parameters(), { lr: 0.01 });
  return Array.from({ length: steps }, () =>
    scope(() => {
      const loss = crossEntropy(model.forward(x).reshape([4 * 12, 17]), y);
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      return loss.item();
    }),
  );
}

describe.skipIf(cudaDevice === null)(`networks on CUDA (${cudaDevice?.name ?? 'no device'})`, () => {
  test.each([0, 0.2])('a small GPT with dropout %d trains there to the losses of the CPU', (rate) => {
    const [near, far] = [losses('cpu', rate, 6), losses('cuda', rate, 6)];
    for (const [i, loss] of near.entries()) expect(far[i]! / loss).toBeCloseTo(1, 4);
    expect(far.at(-1)!).toBeLessThan(far[0]!);
  });

  test.each(halfSoftmaxCases)('softmax of %s along %i is the float64 one, rounded once', (dtype, dim) =>
    checkHalfSoftmax(dtype, dim, 'cuda'),
  );

  test('random tensors are the same there', () => {
    const draws: Record<string, (device: Device) => Tensor> = {
      rand: (device) => rand([7, 9], { device }),
      randint: (device) => randint(-3, 1000, [50], { device }),
      randperm: (device) => randperm(33, { device }),
      bernoulli: (device) => bernoulli(tensor([0.1, 0.5, 0.9, 0.3]).to(device)),
      multinomial: (device) => multinomial(tensor([1, 2, 0, 4]).to(device), 2),
      replacement: (device) => multinomial(tensor([1, 2, 0, 4]).to(device), 9, { replacement: true }),
      dropout: (device) => dropout(tensor(Float32Array.from({ length: 99 }, (_, i) => i)).to(device), 0.3),
    };
    for (const [name, draw] of Object.entries(draws)) {
      manualSeed(5);
      const near = draw('cpu');
      manualSeed(5);
      const far = draw('cuda:0');
      expect([far.device, far.dtype], name).toEqual(['cuda:0', near.dtype]);
      expect(far.toArray(), name).toEqual(near.toArray());
    }
    manualSeed(5);
    const near = randn([101]);
    manualSeed(5);
    expectNear(randn([101], { device: 'cuda' }), near, 2e-7);
  });

  test.each(['float32', 'float64', 'float16', 'bfloat16'] as DType[])(
    'norms, attention, dropout and pooling of %s give the values and gradients of the CPU',
    (dtype) => {
      const tolerance = { float32: 1e-5, float64: 1e-11, float16: 4e-3, bfloat16: 3e-2 }[dtype as 'float32'];
      const ops: Record<string, (x: Tensor, device: Device) => Tensor> = {
        layerNorm: (x, device) =>
          layerNorm(x, [8], { weight: full8(device, dtype), bias: full8(device, dtype) }),
        rmsNorm: (x) => rmsNorm(x, [8]),
        attention: (x) => scaledDotProductAttention(x, x.mul(0.5), x.neg(), { causal: true }),
        masked: (x, device) =>
          scaledDotProductAttention(x, x, x, { mask: arange(0, 36, 1, { device }).reshape([6, 6]).lt(31) }),
        dropout: (x) => dropout(x, 0.25),
        maxPool2d: (x) => maxPool2d(x, 3, { stride: 1, padding: 1 }),
        avgPool2d: (x) => avgPool2d(x, 3, { stride: 1, padding: 1 }),
      };
      for (const [name, op] of Object.entries(ops)) {
        const run = (device: Device): Tensor[] => {
          manualSeed(3);
          const x = randn([2, 6, 8]).to(dtype).to(device).detach();
          x.requiresGrad = true;
          const weights = randn([2, 6, 8]).to(dtype).to(device);
          const out = op(x, device);
          const values = out.detach().clone();
          out.mul(weights).sum().backward();
          return [values, x.grad!];
        };
        const [near, far] = [run('cpu'), run('cuda:0')];
        for (const [i, want] of near.entries()) {
          expect(far[i]!.device, name).toBe('cuda:0');
          expectNear(far[i]!, want, tolerance);
        }
      }
    },
  );

  test.each(['float16', 'bfloat16'] as DType[])(
    'log-softmax, likelihoods and cross entropy of %s give the values and gradients of the CPU',
    (dtype) => {
      const tolerance = dtype === 'float16' ? 4e-3 : 3e-2;
      const shape: Shape = [300, 9];
      const weights = tensor(Float32Array.from({ length: 9 }, (_, i) => 1 + (i % 3))).to(dtype);
      const ops: Record<string, (x: Tensor, labels: Tensor) => Tensor> = {
        logSoftmax: (x) => logSoftmax(x, 0),
        softmax: (x) => softmax(x),
        nllLoss: (x, labels) => nllLoss(x, labels),
        'nllLoss, ignored': (x, labels) => nllLoss(x, labels, { ignoreIndex: 3, reduction: 'none' }),
        crossEntropy: (x, labels) => crossEntropy(x, labels),
        smoothed: (x, labels) =>
          crossEntropy(x, labels, { labelSmoothing: 0.2, weight: weights.to(x.device) }),
        'of rank 3': (x, labels) =>
          crossEntropy(x.reshape([10, 30, 9]).transpose(1, 2), labels.reshape([10, 30]), {
            reduction: 'none',
          }),
        soft: (x) => crossEntropy(x, softmax(x.detach().neg())),
      };
      for (const [name, op] of Object.entries(ops)) {
        for (const isMixed of [false, true]) {
          const [near, far] = (['cpu', 'cuda'] as const).map((device) => {
            manualSeed(9);
            const x = randn(shape).to(dtype).to(device).detach();
            x.requiresGrad = true;
            const labels = randint(0, 9, [300], { device });
            const out = isMixed
              ? autocast({ dtype: dtype as 'float16' }, () => op(x, labels))
              : op(x, labels);
            const value = out.detach().clone();
            out.mul(randn(out.shape).to(out.dtype).to(device)).sum().backward();
            return [value, x.grad!];
          });
          for (const [i, want] of near!.entries()) {
            expect(far![i]!.dtype, `${name}, ${isMixed}`).toBe(want.dtype);
            expectNear(far![i]!, want, tolerance);
          }
        }
      }
    },
  );

  test('cross entropy of bfloat16 logits makes no copy of them in float32', () => {
    const [rows, classes] = [64, 20_001];
    const labels = randint(0, classes, [rows], { device: 'cuda' });
    for (const isMixed of [false, true]) {
      const logits = randn([rows, classes], { device: 'cuda' }).to('bfloat16').detach();
      logits.requiresGrad = true;
      const before = memory('cuda').bytes;
      const loss = isMixed ? autocast({}, () => crossEntropy(logits, labels)) : crossEntropy(logits, labels);
      expect(loss.dtype).toBe(isMixed ? 'float32' : 'bfloat16');
      expect(memory('cuda').bytes - before).toBeLessThan(rows * 64);
      loss.backward();
      // The gradient alone.
      expect(memory('cuda').bytes - before).toBeLessThan(rows * classes * 2 + rows * 64);
    }
  });

  test('batch normalisation moves its running statistics there, and normalises by them', () => {
    const [near, far] = (['cpu', 'cuda'] as const).map((device) => {
      manualSeed(2);
      const layer = new BatchNorm2d(3).to(device);
      const x = randn([4, 3, 5, 5]).to(device);
      layer.forward(x);
      layer.eval();
      return [layer.forward(x), ...Object.values(layer.stateDict())];
    });
    for (const [i, want] of near!.entries()) expectNear(far![i]!, want, 1e-5);
  });

  test.each<[name: string, shapes: Shape[], fn: (...x: Tensor[]) => Tensor]>([
    ['grouped queries', [[1, 4, 5, 8], [1, 2, 6, 8], [1, 2, 6, 8]], (q, k, v) => scaledDotProductAttention(q, k, v, { enableGqa: true })],
    ['a mask with a gradient', [[2, 4, 8], [2, 6, 8], [2, 6, 8], [4, 6]], (q, k, v, mask) => scaledDotProductAttention(q, k, v, { mask })],
    ['einsum', [[3, 3, 2], [4, 2]], (x, y) => einsum('ii...,j...->ij', x, y)],
    ['roll', [[3, 4]], (x) => roll(x, [1, -2], [0, 1])],
    ['conv2d', [[2, 4, 5], [3, 2, 2, 2]], (x, w) => conv2d(x, w)],
    ['adaptiveAvgPool2d', [[2, 4, 5]], (x) => adaptiveAvgPool2d(x, [null, 2])],
    ['norm', [[3, 5]], (x) => norm(x, 1, { p: 0.5 })],
    ['norm −∞', [[3, 5]], (x) => norm(x, 0, { p: -Infinity })],
    ['logSumExp', [[3, 0]], (x) => x.logSumExp(1)],
    ['scatterAdd', [[4, 5], [3, 3]], (x, y) => x.scatterAdd(1, tensor([[0n, 0n], [2n, 1n]], { device: x.device }), y)],
    ['scatter', [[4, 5], [3, 3]], (x, y) => x.scatter(1, tensor([[0n, 1n], [2n, 1n]], { device: x.device }), y)],
    ['scatterReduce prod', [[4, 5], [3, 3]], (x, y) => x.scatterReduce(1, tensor([[0n, 0n], [2n, 1n]], { device: x.device }), y, 'prod')],
    ['scatterReduce amax', [[4], [9]], (x, y) => x.scatterReduce(0, tensor([0n, 1n, 0n, 0n, 1n, 0n, 0n, 3n, 3n], { device: x.device }), y, 'amax')],
    ['at with positions', [[4, 5, 2]], (x) => x.at(tensor([[0n], [-1n]], { device: x.device }), ':', tensor([1n, 0n], { device: x.device }))],
    ['at with a mask', [[3, 5]], (x) => x.at(tensor([true, false, true], { device: x.device }), [1, 4])],
    ['indexPut', [[3, 5], [5]], (x, y) => x.indexPut([tensor([2n, 0n], { device: x.device })], y)],
    ['indexAdd', [[3, 5], [3, 2]], (x, y) => x.indexAdd(1, tensor([2n, 2n], { device: x.device }), y, { alpha: 2 })],
    ['crossEntropy', [[7]], (x) => crossEntropy(x, tensor(2n, { device: x.device }))],
    ['mseLoss', [[3, 1], [4]], (x, y) => mseLoss(x, y)],
  ])('%s and its gradients are those of the CPU', (_, shapes, fn) => {
    const [near, far] = (['cpu', 'cuda'] as const).map((device) => {
      manualSeed(5);
      const leaves = shapes.map((shape) => randn(shape).to(device));
      for (const leaf of leaves) leaf.requiresGrad = true;
      const out = fn(...leaves);
      const value = out.detach().clone();
      out.mul(out).sum().backward();
      return [value, ...leaves.map((leaf) => leaf.grad!)];
    });
    for (const [i, want] of near!.entries()) expectNear(far![i]!, want, 1e-4);
  }); // biome-ignore format: one case a line

  test('integers are multiplied and counted as on the CPU', () => {
    const [a, b] = [randint(-(2 ** 31), 2 ** 31, [70, 90]), randint(-99, 99, [90, 60])];
    for (const dtype of ['int32', 'int64', 'uint8'] as const) {
      const want = matmul(a.to(dtype), b.to(dtype));
      const got = matmul(a.to(dtype).to('cuda'), b.to(dtype).to('cuda'));
      expect(got.to('cpu').dataSync()).toEqual(want.dataSync());
    }
    expect(oneHot(tensor([2n, 0n], { device: 'cuda' })).toArray()).toEqual([
      [0, 0, 1],
      [1, 0, 0],
    ]);
  });

  test('operands of norms and attention on different devices are refused with the names of both', () => {
    const [near, far] = [randn([2, 4, 8]), randn([2, 4, 8], { device: 'cuda' })];
    for (const call of [
      () => scaledDotProductAttention(far, far, near),
      () => scaledDotProductAttention(far, far, far, { mask: randn([4, 4]) }),
      () => layerNorm(far, [8], { bias: randn([8]) }),
      () => batchNorm(far, null, null, { weight: randn([4]), training: true }),
      () => batchNorm(far, randn([4]), randn([4])),
    ]) {
      expect(call).toThrow(/expected tensors on one device, got cuda:0 and cpu/);
      expect(codeOf(call)).toBe('ERR_TENSOR_DEVICE');
    }
  });
});

function full8(device: Device, dtype: DType): Tensor {
  return tensor([1, 2, 0.5, 1, -1, 0.25, 3, 1]).to(dtype).to(device);
}
