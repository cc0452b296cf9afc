// Tests scaledDotProductAttention and selfAttention.
import { describe, expect, test } from 'vitest';
import {
  type AttentionOptions,
  scaledDotProductAttention as attend,
  generator,
  memory,
  noGrad,
  ones,
  randn,
  type Shape,
  scope,
  selfAttention,
  type Tensor,
  tensor,
  tril,
  zeros,
} from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';
import { expectCase, leafOf } from '../../support/torch-case.ts';

const inputs = (q: Shape, k: Shape, v: Shape): [Tensor, Tensor, Tensor] => [
  leaf64(q, 1),
  leaf64(k, 2),
  leaf64(v, 3),
];

/** Computes attention by separate operations with the whole matrix of weights. */
function composed(q: Tensor, k: Tensor, v: Tensor, mask?: Tensor): Tensor {
  const scores = q.matmul(k.transpose(-1, -2)).mul(1 / Math.sqrt(q.shape.at(-1)!));
  const seen = mask ? scores.maskedFill(mask.logicalNot(), -Infinity) : scores;
  return seen.softmax().matmul(v);
}

const expectSame = (got: Tensor, want: Tensor, digits = 5): void => {
  expect(got.shape).toEqual(want.shape);
  const [a, b] = [got.dataSync(), want.dataSync()];
  for (const [i, value] of (a as Float32Array).entries()) expect(value).toBeCloseTo(b[i] as number, digits);
};

describe('scaledDotProductAttention', () => {
  test.each([
    ['[batch, heads, time, width]', [2, 3, 70, 16], [2, 3, 70, 16]],
    ['[heads, time, width]', [3, 5, 8], [3, 9, 8]],
    ['[time, width]', [4, 8], [6, 8]],
  ] as [string, number[], number[]][])(
    'of %s equals separate operations, and so do its gradients',
    (_, shape, other) => {
      const results = [attend, composed].map((op) => {
        const [q, k, v] = inputs(shape, other, other).map((a) => a.to('float32').detach()) as [
          Tensor,
          Tensor,
          Tensor,
        ];
        for (const a of [q, k, v]) a.requiresGrad = true;
        const out = op(q, k, v);
        const values = out.detach().clone();
        out.square().sum().backward();
        return [values, q.grad!, k.grad!, v.grad!];
      });
      for (const [i, want] of results[1]!.entries()) expectSame(results[0]![i]!, want, i === 0 ? 5 : 4);
    },
  );

  test.each([
    ['plain', {}],
    ['causal', { causal: true }],
    ['scaled', { scale: 0.3 }],
    ['with a bool mask', { mask: tensor([[true, false, true, true, true]]) }],
    ['with dropout', { dropout: 0.4 }],
  ] as [string, AttentionOptions][])('gradients, %s', (_, options) => {
    const run = (q: Tensor, k: Tensor, v: Tensor): Tensor =>
      attend(q, k, v, { ...options, generator: generator(8) }).square();
    gradCheck64((q, k, v) => run(q!, k!, v!), inputs([2, 2, 3, 4], [2, 2, 5, 4], [2, 2, 5, 3]));
  });

  test('gradients through heads that are views, shared keys and one tensor in all places', () => {
    gradCheck64(
      (x, kv) => {
        const heads = x!.reshape([1, 4, 2, 3]).transpose(1, 2);
        const shared = kv!.reshape([1, 1, 5, 3]).expand([1, 2, 5, 3]);
        return attend(heads, shared, shared).square();
      },
      [leaf64([4, 6]), leaf64([5, 3], 2)],
    );
    gradCheck64((x) => attend(x!, x!, x!).square(), [leaf64([3, 4])]);
    gradCheck64((x) => attend(x!, x!, x!.t().contiguous().t()).square(), [leaf64([3, 4])]);
  });

  test('masks are broadcast; a query that sees nothing gives 0 and passes no gradient', () => {
    const [q, k, v] = inputs([2, 3, 4, 5], [2, 3, 4, 5], [2, 3, 4, 5]);
    const mask = tril(ones([4, 4])).to('bool');
    expectSame(attend(q, k, v, { mask }), attend(q, k, v, { causal: true }), 12);
    expectSame(attend(q, k, v, { mask }), composed(q, k, v, mask), 12);
    const added = tril(ones([2, 1, 4, 4], { dtype: 'float64' }))
      .sub(1)
      .mul(1e9);
    expectSame(attend(q, k, v, { mask: added }), attend(q, k, v, { causal: true }), 12);
    const blind = tensor([[true], [false], [true], [true]]);
    const out = attend(q, k, v, { mask: blind });
    expect(out.at(':', ':', 1).abs().sum().item()).toBe(0);
    out.sum().backward();
    expect(q.grad!.at(':', ':', 1).abs().sum().item()).toBe(0);
    expect(Number.isFinite(k.grad!.sum().item())).toBe(true);
  });

  test.each(['float16', 'bfloat16'] as const)('%s computes in float32', (dtype) => {
    const wide = [1, 2, 3].map((seed) => randn([2, 9, 8], { generator: generator(seed) }).to(dtype));
    const [q, k, v] = wide as [Tensor, Tensor, Tensor];
    const want = attend(q.to('float32'), k.to('float32'), v.to('float32')).to(dtype);
    expect(attend(q, k, v).toArray()).toEqual(want.toArray());
  });

  test('dropout repeats with its generator and keeps the mean', () => {
    const [q, k, v] = [zeros([1, 200, 4]), zeros([1, 300, 4]), ones([1, 300, 4])];
    const run = (seed: number): Tensor => attend(q, k, v, { dropout: 0.25, generator: generator(seed) });
    expect(run(1).toArray()).toEqual(run(1).toArray());
    expect(run(1).toArray()).not.toEqual(run(2).toArray());
    expect(run(1).mean().item()).toBeCloseTo(1, 2);
  });

  test('memory grows with the length, not with its square', () => {
    const length = 4096;
    noGrad(() =>
      scope(() => {
        const q = randn([1, length, 8], { generator: generator(1) });
        const before = memory().bytes;
        const out = attend(q, q, q, { causal: true });
        expect(memory().bytes - before).toBe(out.count * 4);
        expect(memory().peakBytes).toBeLessThan(length * length * 4);
      }),
    );
  });

  test('refuses shapes, dtypes and dropout that do not fit', () => {
    const x = zeros([2, 3, 4]);
    expect(() => attend(x, zeros([2, 3, 5]), x)).toThrow('got q [2, 3, 4], k [2, 3, 5], v [2, 3, 4]');
    for (const bad of [zeros([3, 3, 4]), zeros([2, 4, 4]), zeros([1, 2, 4])])
      expect(codeOf(() => attend(x, x, bad))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => attend(zeros([4]), zeros([4]), zeros([4])))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => attend(x, x, x, { mask: ones([2, 2]).to('bool') }))).toBe('ERR_TENSOR_SHAPE');
    expect(
      codeOf(() =>
        attend(zeros([1, 3, 4]), zeros([1, 3, 4]), zeros([1, 3, 4]), {
          mask: ones([2, 1, 1, 3, 3]).to('bool'),
        }),
      ),
    ).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => attend(x, x, x, { mask: ones([3, 3], { dtype: 'int32' }) }))).toBe(
      'ERR_TENSOR_DTYPE',
    );
    expect(codeOf(() => attend(x, x, x.to('float64')))).toBe('ERR_TENSOR_DTYPE');
    for (const dropout of [1, -0.1])
      expect(codeOf(() => attend(x, x, x, { dropout }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(attend(zeros([2, 0, 4]), x, x).shape).toEqual([2, 0, 4]);
    expect(
      attend(x, zeros([2, 0, 4]), zeros([2, 0, 4]))
        .abs()
        .sum()
        .item(),
    ).toBe(0);
  });
});

describe('dimensions in front', () => {
  const small = (shape: Shape): Tensor => {
    const count = shape.reduce((x, y) => x * y, 1);
    const values = Array.from({ length: count }, (_, i) => ((i % 5) - 2) / 2);
    return leafOf(tensor(values, { shape, dtype: 'float64' }));
  };

  test('grouped queries share heads of keys and values, as PyTorch with enable_gqa', () => {
    expectCase(
      [small([1, 4, 2, 2]), small([1, 2, 3, 2]), small([1, 2, 3, 2])],
      (q, k, v) => attend(q, k, v, { enableGqa: true }),
      // biome-ignore format: numbers of PyTorch
      [[[[-0.4338139, -0.3770659], [-0.0496716, -0.1918734]], [[0.6182117, -0.7454745], [-0.2309211, -0.292437]],
        [[0.0794623, 0.5794623], [-0.6653203, -0.1653203]], [[-0.1918734, 0.3081266], [-0.3333333, 0.1666667]]]],
      // biome-ignore format: numbers of PyTorch
      [[[[0.3744705, 0.3155633], [0.8699934, 0.9079074]], [[0.7968141, 0.2936839], [2.7384018, 1.5647392]],
        [[4.5983386, 4.5983386], [3.6730083, 3.6730083]], [[7.7483478, 7.7483478], [8.5245651, 8.5245651]]]],
      // biome-ignore format: numbers of PyTorch
      [[[[0.889814, 0.3284364], [-0.8327707, -0.10782], [-0.0570433, -0.2206163]],
        [[-2.9700828, -1.8643014], [5.7571783, -0.637604], [-2.7870956, 2.5019054]]]],
      // biome-ignore format: numbers of PyTorch
      [[[[5.3557779, 6.8562351], [4.3966624, 5.4919429], [6.2475597, 7.651822]],
        [[14.6072201, 15.7988148], [17.732449, 19.2612076], [15.6603309, 16.9399776]]]],
    );
  });

  test.each([
    ['of one size', [2, 6, 3, 4], [2, 3, 5, 4], [2, 3, 5, 4]],
    ['of keys and values apart', [2, 6, 3, 4], [2, 3, 5, 4], [2, 2, 5, 2]],
    ['without a batch', [4, 3, 4], [2, 5, 4], [2, 5, 4]],
    ['with more in front', [2, 2, 4, 3, 4], [2, 1, 2, 5, 4], [2, 1, 2, 5, 4]],
  ] as [string, Shape, Shape, Shape][])(
    'groups %s equal keys and values that are repeated',
    (_, ...shapes) => {
      const repeated = (a: Tensor, heads: number): Tensor => {
        const own = a.shape.at(-3)!;
        const many = a.unsqueeze(-3).expand([...a.shape.slice(0, -2), heads / own, ...a.shape.slice(-2)]);
        return many.reshape([...a.shape.slice(0, -3), heads, ...a.shape.slice(-2)]);
      };
      const heads = shapes[0].at(-3)!;
      const causal = { causal: true, dropout: 0.2 };
      const mask = randn([heads, 3, 5], { generator: generator(3) }).to('float64');
      for (const options of [{ mask }, { ...causal, generator: generator(1) }]) {
        const [got, want] = [true, false].map((enableGqa) => {
          const [q, k, v] = inputs(...shapes);
          const again = 'generator' in options ? { ...options, generator: generator(1) } : options;
          const all = enableGqa ? [k, v] : [repeated(k, heads), repeated(v, heads)];
          const out = attend(q, all[0]!, all[1]!, { ...again, enableGqa });
          const values = out.detach().clone();
          out.square().sum().backward();
          return [values, q.grad!, k.grad!, v.grad!];
        });
        for (const [i, tensor] of want!.entries()) expectSame(got![i]!, tensor, 10);
      }
    },
  );

  test('keys and values of a group are not copied', () => {
    const [heads, time, width] = [64, 512, 32];
    noGrad(() =>
      scope(() => {
        const q = randn([1, heads, time, width], { generator: generator(1) });
        const k = randn([1, 1, time, width], { generator: generator(2) });
        const before = memory().bytes;
        const out = attend(q, k, k, { enableGqa: true });
        expect(memory().peakBytes - before).toBeLessThan(1.1 * out.count * 4);
      }),
    );
  });

  test('are broadcast', () => {
    for (const shapes of [
      [
        [2, 4, 3, 8],
        [2, 1, 5, 8],
        [2, 1, 5, 8],
      ],
      [
        [4, 3, 8],
        [5, 8],
        [5, 8],
      ],
      [
        [3, 8],
        [2, 5, 8],
        [2, 5, 8],
      ],
      [
        [2, 1, 2, 3, 8],
        [4, 1, 5, 8],
        [2, 1, 1, 5, 8],
      ],
    ] as [Shape, Shape, Shape][]) {
      // biome-ignore format: shapes
      const [q, k, v] = inputs(...shapes);
      expectSame(attend(q, k, v), composed(q, k, v), 12);
      gradCheck64((...each) => attend(each[0]!, each[1]!, each[2]!).square(), [q, k, v]);
    }
    const mask = tensor([[[[true, true, false]]], [[[false, true, true]]]]);
    const [q, k, v] = inputs([2, 3, 2, 2, 4], [2, 3, 2, 3, 4], [3, 1, 3, 4]);
    const all = mask.unsqueeze(1);
    expectSame(attend(q, k, v, { mask: all }), composed(q, k, v, all), 12);
  });

  test('refuse heads that are no multiple', () => {
    const heads = (count: number): Tensor => zeros([1, count, 3, 4]);
    expect(() => attend(heads(4), heads(3), heads(3), { enableGqa: true })).toThrow(
      'the heads of q are a multiple of those of k and of v',
    );
    expect(codeOf(() => attend(heads(2), heads(4), heads(4), { enableGqa: true }))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => attend(zeros([3, 4]), zeros([3, 4]), zeros([3, 4]), { enableGqa: true }))).toBe(
      'ERR_TENSOR_SHAPE',
    );
    expect(() => attend(heads(4), heads(2), heads(2))).toThrow('Set enableGqa');
    const mask = ones([3, 3, 3]).to('bool');
    expect(codeOf(() => attend(heads(4), heads(2), heads(2), { enableGqa: true, mask }))).toBe(
      'ERR_TENSOR_SHAPE',
    );
  });
});

describe('a mask that requires a gradient', () => {
  const [q, k, v] = [
    [[-1, -0.5], [0, 0.5]],
    [[-1, -0.5], [0, 0.5], [1, -1]],
    [[-1, -0.5], [0, 0.5], [1, -1]],
  ].map((rows) => tensor([rows], { dtype: 'float64' })) as [Tensor, Tensor, Tensor]; // biome-ignore format: matrices

  test('gets what PyTorch gives it', () => {
    const values = tensor([[0, 1, -1], [0.5, -Infinity, 2]], { dtype: 'float64' }); // biome-ignore format: a matrix
    expectCase(
      [leafOf(q), leafOf(k), leafOf(v), leafOf(values)],
      (a, b, c, mask) => attend(a, b, c, { mask }),
      [[[-0.4361928, -0.0664885], [0.579435, -0.8948587]]],
      [[[0.4781711, 0.5178648], [0.9393986, -0.2348497]]],
      [[[0.4940486, 0.0121746], [-0.5099261, -0.254963], [0.0158775, 0.2427884]]],
      [[[1.1191587, 1.8177523], [0.4595706, 0.9191412], [2.4212707, 3.2631065]]],
      [[-0.6986902, 0.7211444, -0.0224541], [-0.6642551, 0, 0.6642551]],
    ); // biome-ignore format: numbers of PyTorch
  });

  test('gets 0 where a query sees nothing', () => {
    // biome-ignore format: a matrix
    const blind = tensor([[0, 1, -1], [-Infinity, -Infinity, -Infinity]], { dtype: 'float64' });
    expectCase(
      [leafOf(q), leafOf(k), leafOf(v), leafOf(blind)],
      (a, b, c, mask) => attend(a, b, c, { mask }),
      [[[-0.4361928, -0.0664885], [0, 0]]],
      [[[0.4781711, 0.5178648], [0, 0]]],
      [[[0.4940486, 0.2470243], [-0.5099261, -0.254963], [0.0158775, 0.0079387]]],
      [[[0.4883111, 0.9766222], [0.4595706, 0.9191412], [0.0521183, 0.1042366]]],
      [[-0.6986902, 0.7211444, -0.0224541], [0, 0, 0]],
    ); // biome-ignore format: numbers of PyTorch
  });

  test('gives what the kernel gives, with all other options', () => {
    for (const options of [{}, { causal: true }, { dropout: 0.3 }, { scale: 0.2 }, { enableGqa: true }]) {
      const shapes: [Shape, Shape, Shape] = [
        [2, 4, 3, 4],
        [2, 4, 5, 4],
        [2, 4, 5, 2],
      ];
      const heads = inputs(...shapes);
      const mask = leaf64([4, 1, 5], 7);
      const run = (m: Tensor): Tensor => attend(...heads, { ...options, mask: m, generator: generator(4) });
      expectSame(run(mask), run(mask.detach()), 12);
      gradCheck64((m) => run(m!).square(), [mask]);
    }
    const qkv = leaf64([2, 5, 12]);
    const mask = leaf64([2, 1, 5, 5], 2);
    expectSame(selfAttention(qkv, 2, { mask }), selfAttention(qkv, 2, { mask: mask.detach() }), 12);
    gradCheck64((x, m) => selfAttention(x!, 2, { mask: m!, causal: true }).square(), [qkv, mask]);
  });

  test('may be float32 beside narrower queries', () => {
    const half = (shape: Shape): Tensor => leafOf(randn(shape, { generator: generator(2) }).to('bfloat16'));
    const [a, b, c] = [half([2, 3, 4]), half([2, 3, 4]), half([2, 3, 4])];
    const mask = leafOf(zeros([3, 3]));
    const out = attend(a, b, c, { mask });
    expect(out.dtype).toBe('bfloat16');
    expectSame(attend(a, b, c, { mask: mask.detach() }).to('float32'), out.to('float32'), 2);
    out.sum().backward();
    expect([mask.grad!.dtype, a.grad!.dtype]).toEqual(['float32', 'bfloat16']);
    expect(codeOf(() => attend(a, b, c, { mask: zeros([3, 3], { dtype: 'float64' }) }))).toBe(
      'ERR_TENSOR_DTYPE',
    );
  });
});

describe('selfAttention', () => {
  test('is the attention of the heads inside of a packed projection', () => {
    const qkv = leaf64([2, 5, 18]);
    const [q, k, v] = qkv
      .reshape([2, 5, 3, 2, 3])
      .permute([2, 0, 3, 1, 4])
      .chunk(3)
      .map((part) => part.squeeze(0)) as [Tensor, Tensor, Tensor];
    const want = attend(q, k, v, { causal: true }).transpose(1, 2).reshape([2, 5, 6]);
    expectSame(selfAttention(qkv, 2, { causal: true }), want, 12);
    expectSame(selfAttention(qkv.select(0, 1), 2, { causal: true }), want.select(0, 1), 12);
  });

  test('gradients, with masks and dropout', () => {
    const mask = tensor([[[[true, false, true, true]]], [[[true, true, true, false]]]]);
    gradCheck64((x) => selfAttention(x!, 2, { causal: true }).square(), [leaf64([2, 4, 12])]);
    gradCheck64(
      (x) => selfAttention(x!, 2, { mask, dropout: 0.3, generator: generator(1) }).square(),
      [leaf64([2, 4, 12])],
    );
  });

  test('half types stay, and what does not fit is refused', () => {
    expect(selfAttention(zeros([2, 3, 6], { dtype: 'float16' }), 2).dtype).toBe('float16');
    expect(selfAttention(zeros([0, 3, 6]), 2).shape).toEqual([0, 3, 2]);
    expect(codeOf(() => selfAttention(zeros([2, 3, 6]), 4))).toBe('ERR_TENSOR_SHAPE');
    for (const heads of [0, 1.5])
      expect(codeOf(() => selfAttention(zeros([2, 3, 6]), heads))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

test('attention leaves nothing behind when a graph is dropped or run', () => {
  const qkv = randn([2, 5, 12], { generator: generator(1), requiresGrad: true });
  const mask = ones([5, 5]).to('bool');
  const run = (withBackward: boolean): void =>
    scope(() => {
      const packed = selfAttention(qkv.mul(2), 2, { mask });
      const [q, k, v] = qkv.transpose(1, 2).chunk(3, 1) as [Tensor, Tensor, Tensor];
      const loss = packed.sum().add(attend(q, k, v, { causal: true }).sum());
      if (withBackward) loss.backward();
    });
  run(true);
  const before = memory().tensors;
  for (const withBackward of [true, false, true]) run(withBackward);
  expect(memory().tensors).toBe(before);
});
