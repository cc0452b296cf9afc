// PyTorch's transformer: errors, initial values, names and copies. Values are compared with PyTorch in
// test/processes/pytorch/cases/networks/transformers.ts.
import { describe, expect, test } from 'vitest';
import {
  applyRotary,
  manualSeed,
  noGrad,
  ones,
  randn,
  rotaryEmbedding,
  tensor,
  zeros,
} from '../../../src/index.ts';
import {
  LayerNorm,
  MultiheadAttention,
  Transformer,
  TransformerDecoder,
  TransformerDecoderLayer,
  TransformerEncoder,
  TransformerEncoderLayer,
} from '../../../src/nn/index.ts';

test.each([
  ['Transformer: dModel: expected an integer ≥ 1', () => new Transformer({ dModel: 8 } as never)],
  ['Transformer: nhead: expected an integer ≥ 1', () => new Transformer(8, { dropout: 0 } as never)],
  ['Transformer: dModel: expected a multiple of nhead 3, got 8', () => new Transformer(8, 3)],
  ['TransformerEncoderLayer: dModel: expected', () => new TransformerEncoderLayer({} as never, 2)],
  [
    'TransformerDecoderLayer: dModel: expected a multiple of nhead 3',
    () => new TransformerDecoderLayer(8, 3),
  ],
])('the layer that the program makes is named (%s)', (message, make) => {
  expect(make).toThrow(message);
});

describe('MultiheadAttention', () => {
  const layer = new MultiheadAttention(4, 2);
  const x = ones([3, 2, 4]);
  test.each([
    [() => new MultiheadAttention(5, 2), 'embedDim: expected a multiple of numHeads 2, got 5'],
    [() => new MultiheadAttention(4, 2, { addMask: true } as never), "unknown option 'addMask'"],
    [() => layer.forward(x, x, ones([2, 2, 4])), 'expected query [queries, batch, 4], key [keys, batch, 4]'],
    [() => layer.forward(x, x, x, { isCausal: true }), 'isCausal says what attnMask is, and there is none'],
    [
      () => layer.forward(x, x, x, { attnMask: zeros([3, 2]) }),
      'expected attnMask of shape [3, 3] or [4, 3, 3], got [3, 2]',
    ],
    [
      () => layer.forward(x, x, x, { keyPaddingMask: zeros([3, 2]) }),
      'expected keyPaddingMask of shape [2, 3], got [3, 2]',
    ],
    [
      () => layer.forward(x, x, x, { attnMask: zeros([3, 3], { dtype: 'int64' }) }),
      'expected attnMask of bool or float32, the dtype of the query, got int64',
    ],
  ])('refuses %s', (call, text) => {
    expect(call).toThrow(text);
  });

  test('has the initial values of PyTorch', () => {
    manualSeed(1);
    const joint = new MultiheadAttention(16, 2);
    const bound = Math.sqrt(6 / 64);
    expect(joint.inProjWeight!.abs().max().item()).toBeLessThanOrEqual(bound);
    expect(joint.inProjWeight!.std().item()).toBeCloseTo(bound / Math.sqrt(3), 1);
    expect(joint.inProjBias!.abs().max().item()).toBe(0);
    expect(joint.outProj.bias!.abs().max().item()).toBe(0);
    expect(joint.outProj.weight.abs().max().item()).toBeLessThanOrEqual(0.25);
    const apart = new MultiheadAttention(4, 2, { kdim: 3, vdim: 5 });
    expect(apart.namedParameters().map(([name, { shape }]) => [name, shape])).toEqual([
      ['q_proj_weight', [4, 4]],
      ['k_proj_weight', [4, 3]],
      ['v_proj_weight', [4, 5]],
      ['in_proj_bias', [12]],
      ['out_proj.weight', [4, 4]],
      ['out_proj.bias', [4]],
    ]);
  });

  test('takes a learned key and one of zeros, with the values of PyTorch', () => {
    const own = new MultiheadAttention(4, 2, { addBiasKv: true, addZeroAttn: true });
    expect(own.namedParameters().map(([name]) => name)).toEqual(
      'in_proj_weight in_proj_bias bias_k bias_v out_proj.weight out_proj.bias'.split(' '),
    );
    noGrad(() => {
      for (const [i, param] of own.parameters().entries()) {
        const values = Array.from({ length: param.count }, (_, at) => Math.sin(at * 0.7 + i));
        param.copy_(tensor(values).reshape(param.shape));
      }
    });
    const x = tensor([[[1, 0, -1, 0.5]], [[0.5, 2, 0, 1]]]);
    const keyPaddingMask = tensor([[0, 1]], { dtype: 'bool' });
    const want = [-1.0272467, -0.536724, 0.1585613, 0.6358377, -0.4979473, -1.1357166, 0.7580302, 0.1051643];
    const [out, weights] = own.forward(x, x, x, { keyPaddingMask });
    const [lean] = own.forward(x, x, x, { keyPaddingMask, needWeights: false });
    for (const each of [out, lean])
      for (const [i, value] of (each.reshape([8]).toArray() as number[]).entries())
        expect(value).toBeCloseTo(want[i]!, 5);
    expect(weights!.shape).toEqual([1, 2, 4]);
    expect((weights!.toArray() as number[][][])[0]!.map((row) => row[1])).toEqual([0, 0]);
    const learned = new MultiheadAttention(64, 2, { addBiasKv: true });
    expect(learned.biasK!.std().item()).toBeCloseTo(1 / 8, 1);
  });

  test('drops weights while training only', () => {
    const own = new MultiheadAttention(4, 2, { dropout: 0.5 });
    const input = randn([3, 2, 4]);
    const weights = (): unknown => own.forward(input, input, input)[1]!.toArray();
    expect(weights()).not.toEqual(weights());
    own.eval();
    expect(weights()).toEqual(weights());
  });
});

describe('stacks', () => {
  test('copy the layer, so that all start equal and learn apart', () => {
    const layer = new TransformerEncoderLayer(4, 2, { dimFeedforward: 3 });
    const stack = new TransformerEncoder(layer, 2, { norm: new LayerNorm(4) });
    const [first, second] = stack.layers as [TransformerEncoderLayer, TransformerEncoderLayer];
    expect(first.linear1.weight.toArray()).toEqual(layer.linear1.weight.toArray());
    expect(second.linear1.weight.toArray()).toEqual(layer.linear1.weight.toArray());
    expect(first.linear1.weight).not.toBe(second.linear1.weight);
    expect(stack.namedParameters().map(([name]) => name)).toEqual([
      ...[0, 1].flatMap((i) =>
        [
          ...['self_attn.in_proj_weight', 'self_attn.in_proj_bias'],
          ...['self_attn.out_proj.weight', 'self_attn.out_proj.bias'],
          ...['linear1.weight', 'linear1.bias', 'linear2.weight', 'linear2.bias'],
          ...['norm1.weight', 'norm1.bias', 'norm2.weight', 'norm2.bias'],
        ].map((name) => `layers.${i}.${name}`),
      ),
      'norm.weight',
      'norm.bias',
    ]);
  });

  test('refuse what is no layer', () => {
    const layer = new TransformerDecoderLayer(4, 2);
    expect(() => new TransformerEncoder(layer as never, 1)).toThrow('expected a TransformerEncoderLayer');
    expect(() => new TransformerDecoder(layer, 0)).toThrow('numLayers: expected an integer ≥ 1, got 0');
    expect(() => layer.forward(ones([2, 1, 4]), ones([2, 1, 3]))).toThrow(
      'TransformerDecoderLayer: expected memory of 2 or 3 dimensions, the last of size 4, got [2, 1, 3].',
    );
  });

  test('take linear layers without units, as in PyTorch', () => {
    const layer = new TransformerEncoderLayer(4, 2, { dimFeedforward: 0 });
    expect(layer.forward(ones([2, 1, 4])).shape).toEqual([2, 1, 4]);
  });

  test('take an activation as a function', () => {
    const options = { dimFeedforward: 3, dropout: 0 } as const;
    const named = new TransformerEncoderLayer(4, 2, { ...options, activation: 'relu' });
    const own = new TransformerEncoderLayer(4, 2, { ...options, activation: (x) => x.relu() });
    own.loadStateDict(named.stateDict());
    const x = randn([2, 1, 4]);
    expect(own.forward(x).sub(named.forward(x)).abs().max().item()).toBeLessThan(1e-6);
  });

  test('a causal mask hides later inputs', () => {
    const model = new Transformer(4, 2, {
      numEncoderLayers: 1,
      numDecoderLayers: 1,
      dimFeedforward: 3,
    }).eval();
    const tgtMask = Transformer.generateSquareSubsequentMask(3);
    const src = randn([2, 1, 4]);
    const tgt = randn([3, 1, 4]);
    const before = model.forward(src, tgt, { tgtMask, tgtIsCausal: true }).at([0, 2]).toArray();
    tgt.set([2], 5);
    const after = model.forward(src, tgt, { tgtMask, tgtIsCausal: true });
    expect(after.at([0, 2]).toArray()).toEqual(before);
    for (const parameter of model.parameters())
      if (parameter.rank > 1) expect(parameter.abs().max().item()).toBeGreaterThan(0);
  });
});

describe('rotary embeddings', () => {
  test('keep lengths, and products depend on the distance only', () => {
    const [cos, sin] = rotaryEmbedding(6, 4);
    const [q, k] = [randn([4]), randn([4])];
    for (const layout of ['half', 'interleaved'] as const) {
      const turned = (x: typeof q): typeof q => applyRotary(x.expand([6, 4]), cos, sin, { layout });
      const products = turned(q).matmul(turned(k).t());
      expect(products.at(0, 2).item()).toBeCloseTo(products.at(3, 5).item(), 4);
      expect(turned(q).norm(1).at(5).item()).toBeCloseTo(q.norm().item(), 4);
    }
  });

  test('refuse wrong shapes', () => {
    const [cos, sin] = rotaryEmbedding(2, 4);
    expect(() => rotaryEmbedding(2, 3)).toThrow(
      'rotaryEmbedding: width: expected an even integer ≥ 2, got 3',
    );
    expect(() => rotaryEmbedding(-1, 2)).toThrow('positions: expected an integer ≥ 0, got -1');
    expect(() => applyRotary(ones([2, 6]), cos, sin)).toThrow('applyRotary: ');
    expect(() => applyRotary(ones([2, 3]), cos, sin)).toThrow('applyRotary: ');
    expect(() => applyRotary(tensor([1n, 2n]), cos, sin)).toThrow('expected a floating dtype, got int64');
  });
});
