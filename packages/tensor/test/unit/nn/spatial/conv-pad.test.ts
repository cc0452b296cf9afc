// Tests initial values and errors of the convolution and padding layers.
import { describe, expect, test } from 'vitest';
import { ones } from '../../../../src/index.ts';
import {
  ConstantPad1d,
  Conv1d,
  Conv2d,
  Conv3d,
  ConvTranspose1d,
  ConvTranspose2d,
  GroupNorm,
  InstanceNorm1d,
  PReLU,
  ReflectionPad2d,
  ZeroPad2d,
} from '../../../../src/nn/index.ts';

test.each([
  ['GroupNorm', new GroupNorm(1, 0)],
  ['InstanceNorm1d', new InstanceNorm1d(0)],
  ['PReLU', new PReLU(0)],
])('%s takes inputs without channels, as in PyTorch', (_, layer) => {
  const input = ones([2, 0, 5]);
  input.requiresGrad = true;
  const out = layer.forward(input);
  expect(out.shape).toEqual([2, 0, 5]);
  out.sum().backward();
  expect(input.grad!.shape).toEqual([2, 0, 5]);
});

describe('convolution layers', () => {
  test.each([
    ['Conv1d', new Conv1d(4, 60, 4, { groups: 2 }), [60, 2, 4], 8],
    ['Conv3d', new Conv3d(2, 40, [1, 2, 2]), [40, 2, 1, 2, 2], 8],
    ['ConvTranspose1d', new ConvTranspose1d(60, 4, 4, { groups: 2 }), [60, 2, 4], 8],
    ['ConvTranspose2d', new ConvTranspose2d(40, 2, [1, 4]), [40, 2, 1, 4], 8],
  ])('%s starts uniform within the bound of PyTorch', (_, layer, shape, fanIn) => {
    expect(layer.weight.shape).toEqual(shape);
    for (const parameter of [layer.weight, layer.bias!]) {
      const largest = parameter.detach().abs().max().item();
      expect(largest).toBeLessThanOrEqual(1 / Math.sqrt(fanIn));
      if (parameter === layer.weight) expect(largest).toBeGreaterThan(0.9 / Math.sqrt(fanIn));
    }
    expect(Object.keys(layer.stateDict())).toEqual(['weight', 'bias']);
  });

  test('refuse what does not fit before a parameter is made', () => {
    expect(() => new Conv1d(3, 2, 2, { groups: 2 })).toThrow(
      'Conv1d: inChannels: expected a multiple of groups 2',
    );
    expect(() => new Conv3d(2, 2, [1, 2] as never)).toThrow(
      'Conv3d: kernelSize: expected an integer ≥ 1, or three',
    );
    expect(() => new ConvTranspose2d(2, 2, 3, { outputPadding: 1 })).toThrow(
      'ConvTranspose2d: outputPadding',
    );
    expect(() => new Conv2d(2, 2, 3, { paddingMode: 'mirror' as never })).toThrow(
      "Conv2d: paddingMode: expected 'zeros'",
    );
    expect(() => new Conv2d(2, 2, 3, { padding: 'same', stride: 2 })).toThrow(
      "Conv2d: stride with padding 'same'",
    );
    expect(() => new ConvTranspose1d(2, 2, 3, { paddingMode: 'zeros' } as never)).toThrow('paddingMode');
  });
});

describe('padding layers', () => {
  test('refuse sizes and inputs that do not fit', () => {
    expect(() => new ZeroPad2d([1, 1])).toThrow(
      'ZeroPad2d: sizes: expected an integer, or a list of 4, got [1, 1].',
    );
    expect(() => new ConstantPad1d(1, Number.NaN)).toThrow('ConstantPad1d: value');
    expect(() => new ReflectionPad2d(1).forward(ones([2, 2]))).toThrow('ReflectionPad2d');
  });
});
