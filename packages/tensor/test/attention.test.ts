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
} from '../src/index.ts';
import { codeOf } from './code-of.ts';
import { gradCheck64, leaf64 } from './leaf64.ts';

const inputs = (q: Shape, k: Shape, v: Shape): [Tensor, Tensor, Tensor] => [
  leaf64(q, 1),
  leaf64(k, 2),
  leaf64(v, 3),
];

/** The same from separate operations, with the whole matrix of weights. */
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

  test('refuses what does not fit, with sentences', () => {
    const x = zeros([2, 3, 4]);
    expect(() => attend(x, zeros([2, 3, 5]), x)).toThrow('got q [2, 3, 4], k [2, 3, 5], v [2, 3, 4]');
    for (const bad of [zeros([1, 3, 4]), zeros([3, 4]), zeros([2, 4, 4])])
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
    expect(() => attend(x, x, x, { mask: ones([3, 3], { requiresGrad: true }) })).toThrow(
      'no gradient reaches the mask',
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
    for (const heads of [4, 0, 1.5])
      expect(codeOf(() => selfAttention(zeros([2, 3, 6]), heads))).toBe('ERR_TENSOR_SHAPE');
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
