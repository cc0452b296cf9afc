// Compares layers of transformers with PyTorch: parameters and inputs are sine waves, and the numbers below are what
// PyTorch 1.13 gave for them (the first eight elements, then the sum of all absolute values).
import { describe, expect, test } from 'vitest';
import {
  elu,
  full,
  generator,
  leakyRelu,
  manualSeed,
  noGrad,
  ones,
  randn,
  type Shape,
  softplus,
  type Tensor,
  tensor,
  zeros,
} from '../../../src/index.ts';
import {
  Dropout,
  ELU,
  Embedding,
  GELU,
  Identity,
  LayerNorm,
  LeakyReLU,
  LogSoftmax,
  type Module,
  MultiHeadAttention,
  RMSNorm,
  Sigmoid,
  SiLU,
  Softmax,
  Softplus,
  Tanh,
  TransformerBlock,
} from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';

/** Returns a tensor whose element i is sin(i × step). */
function wave(shape: Shape, step: number): Tensor {
  const count = shape.reduce((a, b) => a * b, 1);
  return tensor(
    Float32Array.from({ length: count }, (_, i) => Math.sin(i * step)),
    { shape },
  );
}

/** Sets parameter i to half of the wave of step 0.7 + 0.1 i. */
function setParameters(parameters: readonly Tensor[]): void {
  for (const [i, parameter] of parameters.entries())
    noGrad(() => parameter.copy_(wave(parameter.shape, 0.7 + 0.1 * i).mul(0.5)));
}

function leaf(shape: Shape, step: number): Tensor {
  const x = wave(shape, step);
  x.requiresGrad = true;
  return x;
}

function expectSummary(got: Tensor, want: readonly number[]): void {
  const values = [...(got.dataSync() as Float32Array)];
  const summary = [...values.slice(0, 8), values.reduce((sum, x) => sum + Math.abs(x), 0)];
  expect(summary).toHaveLength(want.length);
  for (const [i, value] of want.entries())
    expect(Math.abs(summary[i]! - value)).toBeLessThan(2e-5 * Math.max(1, Math.abs(value)));
}

/** Runs backward from a weighted sum. Returns a copy of the output, which backward frees. */
function backward(out: Tensor): Tensor {
  const values = out.detach().clone();
  out.mul(wave(out.shape, 0.53)).sum().backward();
  return values;
}

describe('MultiHeadAttention', () => {
  test('causal self-attention: values and gradients are those of PyTorch', () => {
    const layer = new MultiHeadAttention(8, 2, { causal: true });
    setParameters(layer.parameters());
    const x = leaf([2, 5, 8], 0.37);
    expectSummary(
      backward(layer.forward(x)),
      [-0.24594, -1.11463, -1.1675, -0.367742, 0.710462, 1.28366, 0.916628, -0.149386, 142.504],
    );
    expectSummary(
      x.grad!,
      [-0.694501, -1.03918, -0.895119, -0.330068, 0.390219, 0.92698, 1.02777, 0.64518, 66.2918],
    );
    expectSummary(
      layer.inProjWeight.grad!,
      [-0.346769, -0.000751178, 0.345368, 0.644744, 0.856856, 0.952997, 0.920154, 0.762773, 74.7152],
    );
    expectSummary(
      layer.inProjBias!.grad!,
      [-0.682933, -0.0670555, 0.578921, 0.965038, 0.455989, 0.327834, 0.0525247, -0.246362, 8.45079],
    );
    expectSummary(
      layer.outProj.weight.grad!,
      [-1.08575, -1.36125, -1.03863, -0.26431, 0.656992, 1.26496, 1.31845, 0.794384, 51.0063],
    );
  });

  test('attention to a memory: values and gradients are those of PyTorch', () => {
    const layer = new MultiHeadAttention(8, 2);
    setParameters(layer.parameters());
    const [x, memory] = [leaf([2, 5, 8], 0.37), leaf([2, 7, 8], 0.29)];
    expectSummary(
      backward(layer.forward(x, memory)),
      [2.02504, 0.745933, -1.17472, -2.2371, -1.55676, 0.394479, 2.10198, 2.18202, 102.592],
    );
    expectSummary(
      x.grad!,
      [0.127155, -0.707436, -1.20931, -1.14242, -0.53824, 0.319087, 1.02634, 1.25089, 51.82],
    );
    expectSummary(
      memory.grad!,
      [0.0484744, 0.336686, 0.46655, 0.376987, 0.110122, -0.208536, -0.429115, -0.447876, 41.0332],
    );
    expectSummary(
      layer.inProjWeight.grad!,
      [-0.481528, -0.231626, 0.0496256, 0.32416, 0.554822, 0.71039, 0.769811, 0.725042, 78.5435],
    );
  });

  test('has the names and the first values of PyTorch, takes masks, drops only while training', () => {
    manualSeed(1);
    const layer = new MultiHeadAttention(64, 4, { dropout: 0.5 });
    expect(Object.keys(layer.stateDict())).toEqual([
      'in_proj_weight',
      'in_proj_bias',
      'out_proj.weight',
      'out_proj.bias',
    ]);
    const bound = Math.sqrt(6 / 256);
    const largest = layer.inProjWeight.abs().max().item();
    expect(largest).toBeLessThanOrEqual(bound);
    expect(largest).toBeGreaterThan(bound * 0.99);
    expect(layer.inProjBias!.abs().max().item()).toBe(0);
    expect(layer.outProj.bias!.abs().max().item()).toBe(0);
    const x = randn([2, 6, 64], { generator: generator(1) });
    const run = (): unknown => noGrad(() => layer.forward(x).toArray());
    expect(run()).not.toEqual(run());
    layer.eval();
    expect(run()).toEqual(run());
    const mask = ones([6, 6]).tril().to('bool');
    const causal = new MultiHeadAttention(64, 4, { causal: true });
    causal.loadStateDict(layer.stateDict());
    expect(noGrad(() => layer.forward(x, x, { mask }).toArray())).toEqual(
      noGrad(() => causal.forward(x).toArray()),
    );
    for (const [width, heads] of [
      [10, 4],
      [0, 1],
      [8, 0],
    ] as const)
      expect(codeOf(() => new MultiHeadAttention(width, heads))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => new MultiHeadAttention(8, 2, { dropout: 1 }))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

describe('TransformerBlock', () => {
  test('values and gradients are those of PyTorch with normalisation first', () => {
    const block = new TransformerBlock(8, 2, { causal: true });
    const { attention, mlp, norm1, norm2 } = block;
    // PyTorch defines them in this order.
    const inOrder: Module[] = [attention, mlp, norm1, norm2];
    setParameters(inOrder.flatMap((module) => module.parameters()));
    const x = leaf([2, 5, 8], 0.37);
    expectSummary(
      backward(block.forward(x)),
      [-0.0948151, 2.29443, 0.524636, 0.951321, 0.241112, -0.113184, 1.98781, 0.268275, 113.706],
    );
    expectSummary(
      x.grad!,
      [1.33551, -1.66248, 0.723514, 0.757918, -0.00176549, 2.08853, 0.948371, -1.06362, 59.5622],
    );
    expectSummary(
      mlp.parameters()[2]!.grad!,
      [-0.116616, 0.200605, 0.086309, -0.049846, 0.0970836, -0.0946091, 0.187294, 0.0966117, 35.0266],
    );
    expectSummary(
      norm1.weight!.grad!,
      [0.588556, 1.16335, -0.199291, -0.992339, -0.202892, 0.893257, 0.660732, -0.573761, 5.27418],
    );
    expectSummary(
      norm2.bias!.grad!,
      [0.0373546, -0.332198, -0.338723, 0.0249121, 0.361323, 0.302877, -0.0865548, -0.381399, 1.86534],
    );
  });

  test('drops only while training', () => {
    const block = new TransformerBlock(8, 2, { dropout: 0.3 });
    const x = randn([1, 4, 8], { generator: generator(2) });
    const run = (): unknown => noGrad(() => block.forward(x).toArray());
    expect(run()).not.toEqual(run());
    block.eval();
    expect(run()).toEqual(run());
  });
});

describe('layers around them', () => {
  test('Embedding starts normal; its padding row is 0 and stays without gradient', () => {
    manualSeed(3);
    const layer = new Embedding(200, 50);
    expect(layer.weight.mean().item()).toBeCloseTo(0, 1);
    expect(layer.weight.std().item()).toBeCloseTo(1, 1);
    const padded = new Embedding(5, 3, { paddingIdx: 2 });
    expect(padded.weight.at(2).toArray()).toEqual([0, 0, 0]);
    noGrad(() => padded.weight.at(2).fill_(7));
    const out = padded.forward(
      tensor(
        [
          [1, 2],
          [2, 4],
        ],
        { dtype: 'int64' },
      ),
    );
    expect(out.at(0, 1).toArray()).toEqual([7, 7, 7]);
    out.sum().backward();
    expect(padded.weight.grad!.sum(1).toArray()).toEqual([0, 3, 0, 0, 3]);
    for (const paddingIdx of [-6, 5])
      expect(codeOf(() => new Embedding(5, 3, { paddingIdx }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => new Embedding(-1, 3))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test.each([
    [2, [0.6, 0.8], [0.4472135603427887, 0.8944271206855774]],
    [1, [0.4285714030265808, 0.5714285373687744], [0.3333333134651184, 0.6666666269302368]],
    [Infinity, [0.75, 1], [0.4999999701976776, 0.9999999403953552]],
  ])(
    'Embedding shortens the rows that it looks up by the norm of order %d, as PyTorch does',
    (normType, a, b) => {
      const layer = new Embedding(4, 2, { maxNorm: 1, normType, paddingIdx: 3 });
      const table = [
        [3, 4],
        [0.1, 0.2],
        [6, -8],
        [1, 2],
      ];
      noGrad(() => layer.weight.copy_(tensor(table)));
      const out = layer.forward(
        tensor([
          [0n, 1n],
          [0n, 3n],
        ]),
      );
      const [first, short, long, last] = layer.weight.toArray() as number[][];
      for (const [i, want] of [...a, ...b].entries()) expect([...first!, ...last!][i]).toBeCloseTo(want, 6);
      expect([short, long]).toEqual([[0.1, 0.2].map(Math.fround), [6, -8]]);
      expect(out.detach().at(1).toArray()).toEqual([first, last]);
      out.sum().backward();
      expect(layer.weight.grad!.toArray()).toEqual([
        [2, 2],
        [1, 1],
        [0, 0],
        [0, 0],
      ]);
      expect(layer.forward(zeros([0], { dtype: 'int64' })).shape).toEqual([0, 2]);
      expect(codeOf(() => new Embedding(4, 2, { maxNorm: -1 }))).toBe('ERR_TENSOR_ARGUMENT');
      expect(codeOf(() => layer.forward(undefined as never))).toBe('ERR_TENSOR_ARGUMENT');
    },
  );

  test('Embedding divides the gradient of a row by how often the index names it', () => {
    const layer = new Embedding(4, 2, { scaleGradByFreq: true, paddingIdx: null, maxNorm: null });
    const rows = layer.forward(
      tensor([
        [0n, 1n, 0n],
        [0n, 2n, 1n],
      ]),
    );
    expect(rows.detach().at(0, 2).toArray()).toEqual(layer.weight.detach().at(0).toArray());
    rows.sum().backward();
    expect(layer.weight.grad!.toArray()).toEqual([
      [1, 1],
      [1, 1],
      [1, 1],
      [0, 0],
    ]);
    expect(layer.forward(zeros([0], { dtype: 'int64' })).shape).toEqual([0, 2]);
  });

  test('LayerNorm and RMSNorm start as 1 and 0, with as many parameters as asked for', () => {
    const layer = new LayerNorm([2, 3]);
    expect(layer.weight!.toArray()).toEqual(ones([2, 3]).toArray());
    expect(layer.bias!.abs().sum().item()).toBe(0);
    expect(new LayerNorm(4, { bias: false }).parameters()).toHaveLength(1);
    expect(new LayerNorm(4, { affine: false }).parameters()).toHaveLength(0);
    expect(new RMSNorm(4, { affine: false }).parameters()).toHaveLength(0);
    expect(new RMSNorm(2, { eps: 0 }).forward(tensor([3, 3])).toArray()).toEqual([1, 1]);
    expect(
      layer
        .forward(full([1, 2, 3], 5))
        .abs()
        .sum()
        .item(),
    ).toBe(0);
  });

  test('activations are the functions of their name', () => {
    const x = tensor([[-1, 0, 2]]);
    const pairs: [Tensor, Tensor][] = [
      [new GELU().forward(x), x.gelu()],
      [new SiLU().forward(x), x.silu()],
      [new Tanh().forward(x), x.tanh()],
      [new Sigmoid().forward(x), x.sigmoid()],
      [new LeakyReLU().forward(x), leakyRelu(x)],
      [new LeakyReLU(0.5).forward(x), leakyRelu(x, 0.5)],
      [new ELU().forward(x), elu(x)],
      [new ELU(2).forward(x), elu(x, 2)],
      [new Softplus().forward(x), softplus(x)],
      [new Softmax().forward(x), x.softmax()],
      [new Softmax(0).forward(x), x.softmax(0)],
      [new LogSoftmax().forward(x), x.logSoftmax()],
      [new Identity().forward(x), x],
    ];
    for (const [got, want] of pairs) expect(got.toArray()).toEqual(want.toArray());
  });

  test('Dropout follows train() and eval()', () => {
    const layer = new Dropout(0.5);
    const x = ones([100]);
    expect(new Set(layer.forward(x).dataSync() as Float32Array)).toEqual(new Set([0, 2]));
    expect(layer.eval().forward(x).toArray()).toEqual(x.toArray());
    expect(codeOf(() => new Dropout(1.5))).toBe('ERR_TENSOR_ARGUMENT');
  });
});
