// Layers in captured steps: forward and backward give what the eager calls give, also for layers that compute places
// or weights on the host.
import { describe, expect, test } from 'vitest';
import { compile, manualSeed, memory, randint, randn, synchronize, type Tensor } from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import { cudaDevice } from '../../support/cuda-device.ts';

const device = 'cuda';
const floats = (...shape: number[]): Tensor => randn(shape, { device });
const labels = (...shape: number[]): Tensor => randint(0, 4, shape, { device });

/** Makes a layer and its inputs. */
const makers: Readonly<Record<string, () => [{ forward: unknown } & nn.Module, Tensor[]]>> = {
  Embedding: () => [new nn.Embedding(4, 3), [labels(3, 2)]],
  EmbeddingBag: () => [new nn.EmbeddingBag(4, 3), [labels(3, 2)]],
  MaxPool2d: () => [new nn.MaxPool2d(2), [floats(2, 3, 8, 8)]],
  AvgPool2d: () => [new nn.AvgPool2d(2), [floats(2, 3, 8, 8)]],
  AdaptiveAvgPool2d: () => [new nn.AdaptiveAvgPool2d(3), [floats(2, 3, 8, 8)]],
  AdaptiveMaxPool2d: () => [new nn.AdaptiveMaxPool2d(3), [floats(2, 3, 8, 8)]],
  'Upsample bilinear': () => [new nn.Upsample({ scaleFactor: 2, mode: 'bilinear' }), [floats(1, 2, 4, 4)]],
  'Upsample nearest': () => [new nn.Upsample({ scaleFactor: 3 }), [floats(1, 2, 4, 4)]],
  ReflectionPad2d: () => [new nn.ReflectionPad2d(1), [floats(1, 2, 4, 4)]],
  LocalResponseNorm: () => [new nn.LocalResponseNorm(2), [floats(2, 4, 3, 3)]],
  ConvTranspose3d: () => [new nn.ConvTranspose3d(2, 3, 2), [floats(1, 2, 3, 3, 3)]],
  Fold: () => [new nn.Fold([4, 4], 2), [floats(1, 8, 9)]],
  LSTM: () => [new nn.LSTM(4, 5), [floats(6, 2, 4)]],
  GRU: () => [new nn.GRU(4, 5), [floats(6, 2, 4)]],
  GroupNorm: () => [new nn.GroupNorm(2, 4), [floats(3, 4, 5, 5)]],
  MultiLabelMarginLoss: () => [new nn.MultiLabelMarginLoss(), [floats(4, 4), labels(4, 4)]],
  MultiMarginLoss: () => [new nn.MultiMarginLoss(), [floats(4, 4), labels(4)]],
  TransformerBlock: () => [new nn.TransformerBlock(8, 2, { causal: true }), [floats(2, 5, 8)]],
};

describe.skipIf(cudaDevice === null)(`layers in captured steps on ${cudaDevice?.name}`, () => {
  test.each(Object.keys(makers))('%s', (name) => {
    manualSeed(1);
    const [layer, inputs] = makers[name]!();
    layer.to(device);
    const forward = layer.forward as (...inputs: Tensor[]) => Tensor | [Tensor, ...unknown[]];
    for (const x of inputs) if (x.dtype === 'float32') x.requiresGrad = true;
    const leaves = [...inputs.filter(({ requiresGrad }) => requiresGrad), ...layer.parameters()];
    const run = (): Tensor[] => {
      for (const leaf of leaves) leaf.zeroGrad();
      const result = forward.apply(layer, inputs);
      const out = Array.isArray(result) ? result[0] : result;
      const kept = out.detach().clone();
      out.mul(out).sum().backward();
      return [kept, ...leaves.map(({ grad }) => grad!.clone())];
    };
    const wanted = run().map((x) => x.toArray());
    const step = compile(run, { device, warmUps: 1 });
    for (let i = 0; i < 3; i++) expect(step().map((x) => x.toArray())).toEqual(wanted);
    expect(step.isCaptured).toBe(true);
  });

  test('places that an op computes on the host are copied once, and take a bounded amount of memory', () => {
    const pool = new nn.AdaptiveAvgPool2d(3);
    const x = floats(1, 1, 7, 7);
    const bytes = (): number => memory(device).bytes;
    pool.forward(x).dispose();
    const before = bytes();
    for (let i = 0; i < 10; i++) pool.forward(x).dispose();
    expect(bytes()).toBe(before);
    // Each size has a table of its own, of 12 KB and more.
    const widest = 600;
    for (let width = 256; width < widest; width++) {
      const wide = floats(1, 1, 1, width);
      new nn.AdaptiveAvgPool2d([1, width]).forward(wide).dispose();
      wide.dispose();
    }
    synchronize(device);
    expect(bytes() - before).toBeLessThan(4.5 * 2 ** 20);
  });
});
