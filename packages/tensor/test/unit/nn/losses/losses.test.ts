// Tests the options of crossEntropy and nllLoss, the losses of pairs of tensors, and losses as modules.
import { describe, expect, test } from 'vitest';
import {
  bce,
  bceWithLogits,
  cosineEmbeddingLoss,
  cosineSimilarity,
  crossEntropy,
  huberLoss,
  klDiv,
  l1Loss,
  logSoftmax,
  memory,
  mseLoss,
  nllLoss,
  scope,
  sigmoid,
  smoothL1Loss,
  softmax,
  type Tensor,
  tensor,
  zeros,
} from '../../../../src/index.ts';
import {
  BCEWithLogitsLoss,
  CosineEmbeddingLoss,
  CosineSimilarity,
  CrossEntropyLoss,
  HuberLoss,
  KLDivLoss,
  L1Loss,
  MSELoss,
  NLLLoss,
  SmoothL1Loss,
} from '../../../../src/nn/index.ts';
import { codeOf } from '../../../support/code-of.ts';
import { gradCheck64, gradientsOf, leaf64 } from '../../../support/leaf64.ts';
import { expectCase, leafOf } from '../../../support/torch-case.ts';

const labels = tensor([2n, 0n, -100n, 1n]);
const weight = tensor([0.5, 1, 2], { dtype: 'float64' });

/** Returns the mean cross entropy, computed row by row as PyTorch's documentation defines it. */
function byHand(
  logits: number[][],
  wanted: number[],
  classWeights: number[],
  smoothing: number,
  ignored: number,
): number {
  let [total, divisor] = [0, 0];
  for (const [r, row] of logits.entries()) {
    if (wanted[r] === ignored) continue;
    const sum = row.reduce((s, x) => s + Math.exp(x), 0);
    const losses = row.map((x, c) => -classWeights[c]! * (x - Math.log(sum)));
    const even = losses.reduce((s, x) => s + x, 0) / row.length;
    total += (1 - smoothing) * losses[wanted[r]!]! + smoothing * even;
    divisor += classWeights[wanted[r]!]!;
  }
  return total / divisor;
}

describe('crossEntropy', () => {
  const logits = leaf64([4, 3]);
  const values = logits.toArray() as number[][];

  test('leaves out ignored rows, weighs classes, smooths labels', () => {
    const wanted = [2, 0, -100, 1];
    expect(crossEntropy(logits, labels).item()).toBeCloseTo(byHand(values, wanted, [1, 1, 1], 0, -100), 12);
    expect(crossEntropy(logits, labels, { weight }).item()).toBeCloseTo(
      byHand(values, wanted, [0.5, 1, 2], 0, -100),
      12,
    );
    expect(crossEntropy(logits, labels, { weight, labelSmoothing: 0.2 }).item()).toBeCloseTo(
      byHand(values, wanted, [0.5, 1, 2], 0.2, -100),
      12,
    );
    const shifted = tensor([2, 0, 1, 1], { dtype: 'int32' });
    expect(crossEntropy(logits, shifted, { ignoreIndex: 1, labelSmoothing: 0.3 }).item()).toBeCloseTo(
      byHand(values, [2, 0, 1, 1], [1, 1, 1], 0.3, 1),
      12,
    );
    expect((crossEntropy(logits, labels, { reduction: 'none' }).toArray() as number[])[2]).toBeCloseTo(0, 12);
    expect(crossEntropy(logits, tensor([-100, -100, -100, -100], { dtype: 'int32' })).item()).toBeNaN();
  });

  test('takes more dimensions behind the classes', () => {
    const wide = leaf64([2, 3, 4, 5]);
    const many = tensor(
      Float32Array.from({ length: 40 }, (_, i) => i % 3),
      { shape: [2, 4, 5], dtype: 'int64' },
    );
    const rows = wide.permute([0, 2, 3, 1]).reshape([40, 3]);
    expect(crossEntropy(wide, many).item()).toBeCloseTo(crossEntropy(rows, many.flatten()).item(), 12);
    expect(nllLoss(logSoftmax(wide, 1), many, { reduction: 'none' }).shape).toEqual([2, 4, 5]);
  });

  test('takes probabilities of classes', () => {
    const [soft] = [softmax(leaf64([4, 3], 9).detach())];
    const oneHot = tensor([
      [0, 0, 1],
      [1, 0, 0],
      [0, 1, 0],
      [0, 1, 0],
    ]).to('float64');
    const hard = tensor([2n, 0n, 1n, 1n]);
    expect(crossEntropy(logits, oneHot).item()).toBeCloseTo(crossEntropy(logits, hard).item(), 12);
    expect(crossEntropy(logits, oneHot, { labelSmoothing: 0.1 }).item()).toBeCloseTo(
      crossEntropy(logits, hard, { labelSmoothing: 0.1 }).item(),
      12,
    );
    gradCheck64((x) => crossEntropy(x!, soft!, { weight, labelSmoothing: 0.1 }), [logits]);
    expect(crossEntropy(logits, soft, { reduction: 'none' }).shape).toEqual([4]);
  });

  test.each(['mean', 'sum', 'none'] as const)('has the gradient of its values: %s', (reduction) => {
    for (const options of [{}, { weight }, { weight, labelSmoothing: 0.2 }, { ignoreIndex: 0 }]) {
      const given = 'ignoreIndex' in options ? tensor([2n, 0n, 1n, 1n]) : labels;
      gradCheck64((x) => crossEntropy(x!, given, { ...options, reduction }), [logits]);
      const { labelSmoothing: _, ...others } = { labelSmoothing: 0, ...options };
      gradCheck64((x) => nllLoss(x!, given, { ...others, reduction }), [logits]);
    }
  });

  test('refuses what does not fit', () => {
    expect(codeOf(() => crossEntropy(logits, labels, { weight: tensor([1, 2]) }))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => crossEntropy(logits, labels, { labelSmoothing: 2 }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => crossEntropy(logits, leaf64([4])))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => crossEntropy(logits, tensor([3n, 0n, -100n, 0n])))).toBe('ERR_TENSOR_LABEL');
  });
});

describe('losses of pairs', () => {
  const [a, b] = [leaf64([3, 4], 1), leaf64([3, 4], 2)];
  const share = (x: Tensor): Tensor => sigmoid(x);
  const fixed = b.detach().clone();
  const signs = tensor([1, -1, -1]);

  test.each<[string, (x: Tensor, y: Tensor) => Tensor]>([
    ['l1Loss', (x, y) => l1Loss(x, y)],
    ['huberLoss', (x, y) => huberLoss(x, y, { delta: 0.7 })],
    ['smoothL1Loss', (x, y) => smoothL1Loss(x, y, { beta: 0.6, reduction: 'none' })],
    ['bce', (x, y) => bce(share(x), share(y), { weight: fixed.abs() })],
    ['bceWithLogits', (x, y) => bceWithLogits(x, share(y), { posWeight: fixed.abs(), reduction: 'sum' })],
    ['klDiv', (x, y) => klDiv(logSoftmax(x), softmax(y), { reduction: 'batchmean' })],
    ['klDiv of logarithms', (x, y) => klDiv(logSoftmax(x), logSoftmax(y), { logTarget: true })],
    ['cosineSimilarity', (x, y) => cosineSimilarity(x, y, 0)],
    ['cosineEmbeddingLoss', (x, y) => cosineEmbeddingLoss(x, y, signs, { margin: -0.9 })],
  ])('%s has the gradient of its values, on both sides', (_, loss) => {
    gradCheck64((x, y) => loss(x!, y!), [a, b]);
  });

  test('have the values of their definitions', () => {
    const [x, y] = [tensor([0, 3, -1]), tensor([0.5, 0, 1])];
    expect(l1Loss(x, y).item()).toBeCloseTo(5.5 / 3, 6);
    expect(huberLoss(x, y, { reduction: 'none', delta: 2 }).toArray()).toEqual([0.125, 4, 2]);
    expect(smoothL1Loss(x, y, { reduction: 'none', beta: 2 }).toArray()).toEqual([0.0625, 2, 1]);
    expect(smoothL1Loss(x, y, { beta: 0, reduction: 'sum' }).item()).toBe(5.5);
    expect(
      cosineSimilarity(
        tensor([
          [3, 4],
          [0, 0],
        ]),
        tensor([
          [4, 3],
          [1, 0],
        ]),
      ).toArray(),
    ).toEqual([expect.closeTo(0.96, 6), 0]);
    expect(klDiv(tensor([Math.log(0.5), 0]), tensor([1, 0]), { reduction: 'sum' }).item()).toBeCloseTo(
      Math.LN2,
      6,
    );
  });

  test('binary cross entropy stays finite where probabilities are 0 and 1', () => {
    const p = tensor([0, 1, 1, 0.5], { requiresGrad: true });
    const losses = bce(p, tensor([1, 0, 1, 1]), { reduction: 'none' });
    expect(losses.toArray()).toEqual([100, 100, -0, expect.closeTo(Math.LN2, 6)]);
    losses.sum().backward();
    expect((p.grad!.toArray() as number[]).every((g) => Number.isFinite(g))).toBe(true);
    const x = tensor([-200, 200, 0], { requiresGrad: true });
    const stable = bceWithLogits(x, tensor([1, 1, 1]), { reduction: 'none' });
    expect(stable.toArray()).toEqual([200, 0, expect.closeTo(Math.LN2, 6)]);
    stable.sum().backward();
    expect(x.grad!.toArray()).toEqual([-1, 0, -0.5]);
  });

  test('have the gradients of PyTorch where differences are infinite or NaN', () => {
    const none = { reduction: 'none' } as const;
    const far = [Infinity, -Infinity, NaN, 2, 0.5, 1];
    const zeros = far.map(() => 0);
    expect(gradientsOf((x, y) => huberLoss(x, y, none), far, zeros)).toEqual([
      [1, -1, NaN, 1, 0.5, 1],
      [-1, 1, NaN, -1, -0.5, -1],
    ]);
    const [slopes] = gradientsOf((x, y) => smoothL1Loss(x, y, { beta: 0.5 }), far, zeros) as [number[]];
    expect(slopes.map((slope) => slope * 6)).toEqual([1, -1, NaN, 1, 1, 1]);
    expect(gradientsOf((x, y) => l1Loss(x, y, none), [NaN, 2, 0], [0, 0, 0])).toEqual([
      [0, 1, 0],
      [-0, -1, -0],
    ]);
    expect(klDiv(tensor([-1, -1, -1]), tensor([0, 0.5, -1]), none).toArray()).toEqual([
      0,
      expect.closeTo(0.1534264, 6),
      NaN,
    ]);
    expect(gradientsOf((x, y) => klDiv(x, y, none), [-1, -1, -1], [0, 0.5, -1])).toEqual([
      [-0, -0.5, 1],
      [NaN, expect.closeTo(1.3068528194, 9), NaN],
    ]);
    expect(gradientsOf((x, y) => bce(x, y, none), [0, 1, 0.25], [1, 0.5, 0.5])[1]).toEqual([
      Infinity,
      -Infinity,
      expect.closeTo(1.0986122887, 9),
    ]);
  });

  test('a vector of zeros has a finite gradient', () => {
    expect(gradientsOf((x, y) => cosineSimilarity(x, y, 0), [0, 0], [3, 4])).toEqual([
      [expect.closeTo(6e7, 0), expect.closeTo(8e7, 0)],
      [0, 0],
    ]);
    // If the length is below eps, the gradient passes as if the length were not clamped.
    expect(gradientsOf((x, y) => cosineSimilarity(x, y, 0, 1e-3), [1e-4, 0], [3, 4])).toEqual([
      [expect.closeTo(540, 6), expect.closeTo(800, 6)],
      [expect.closeTo(0.0128, 9), expect.closeTo(-0.0096, 9)],
    ]);
    expect(cosineSimilarity(tensor([300, 0], { dtype: 'float16' }), tensor([300, 0]), 0).item()).toBe(1);
    const options = { reduction: 'sum' } as const;
    const rows = (x: Tensor): Tensor => x.reshape([4, 2]);
    const embed = (x: Tensor, y: Tensor): Tensor =>
      cosineEmbeddingLoss(rows(x), rows(y), tensor([1, -1, 1, 0]), options);
    const [left, right] = [
      [1, 2, 1, 1, 0, 0, 1, 0],
      [2, 1, 1, 0, 3, 4, 1, 0],
    ];
    expect(embed(tensor(left!), tensor(right!)).item()).toBeCloseTo(1.9071068, 5);
    const [slopes] = gradientsOf(embed, left!, right!) as [number[]];
    expect(slopes.map((slope) => +slope.toPrecision(6))).toEqual([
      -0.24, 0.12, 0.353553, -0.353553, -600000, -800000, 0, 0,
    ]);
  });

  test('bce refuses values outside 0 to 1; some losses refuse dtypes that differ', () => {
    const half = tensor([0.5, 0.5]);
    for (const wrong of [1.5, -0.001, NaN, Infinity]) {
      const probabilities = tensor([0.5, wrong]);
      expect(() => bce(probabilities, half)).toThrow(
        /^bce: expected probabilities from 0 to 1, got .* at position 1. Use sigmoid, or bceWithLogits/,
      );
      expect(() => bce(half, probabilities)).toThrow('bce: expected targets from 0 to 1, got');
    }
    expect(bce(zeros([0]), zeros([0]), { reduction: 'sum' }).item()).toBe(0);
    const labels = tensor([0n, 1n]);
    for (const loss of [bce, bceWithLogits, klDiv, huberLoss])
      expect(codeOf(() => loss(half, labels))).toBe('ERR_TENSOR_DTYPE');
    for (const loss of [mseLoss, l1Loss, smoothL1Loss]) expect(loss(half, labels).dtype).toBe('float32');
    expect(mseLoss(labels, half).item()).toBe(0.25);
    expect(mseLoss(half, tensor([true, false])).item()).toBe(0.25);
  });

  test('broadcast as in PyTorch, and warn once each, because a dimension may have been forgotten', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on('warning', note);
    const [p, t] = [(): Tensor => leafOf(tensor([[1], [3]])), (): Tensor => leafOf(tensor([0, 1, 4]))];
    for (let turn = 0; turn < 2; turn++) {
      // biome-ignore format: numbers of PyTorch
      for (const [loss, ...want] of [
        [mseLoss, 4, [[-0.6666667], [1.3333333]], [-1.3333333, -0.6666667, 1.3333333]],
        [l1Loss, 1.6666667, [[0], [0.1666667]], [-0.3333333, -0.1666667, 0.3333333]],
        [smoothL1Loss, 1.25, [[0], [0.1666667]], [-0.3333333, -0.1666667, 0.3333333]],
      ] as const) expectCase([p(), t()], (x, y) => loss(x, y), ...(want as unknown as [number, number[][], number[]]));
      expectCase(
        [p(), t()],
        (x, y) => huberLoss(x, y, { delta: 2 }),
        1.8333333,
        [[-0.1666667], [0.5]],
        [-0.5, -0.3333333, 0.5],
      );
    }
    // PyTorch broadcasts this one without a warning, too. The mean is over the first size of the input.
    expectCase(
      [leafOf(tensor([[-1], [-2]])), leafOf(tensor([0.25, 0.75]))],
      (x, y) => klDiv(x, y, { reduction: 'batchmean' }),
      0.9376649,
      [[-0.5], [-0.5]],
      [1.1137056, 2.212318],
    );
    expect(mseLoss(p(), tensor(2), { reduction: 'none' }).shape).toEqual([2, 1]);
    await new Promise(setImmediate);
    process.off('warning', note);
    const said = warnings.filter(
      (warning) => 'code' in warning && warning.code === 'RINGWISE_LOSS_BROADCAST',
    );
    expect(said.map(({ message }) => message.split(':')[0])).toEqual([
      'mseLoss',
      'l1Loss',
      'smoothL1Loss',
      'huberLoss',
    ]);
    expect(said[0]!.message).toContain('the prediction [2, 1] and the target [3] differ in shape');
  });

  test('cosineSimilarity is that of the shape that both are broadcast to, as in PyTorch', () => {
    const rows = tensor([
      [3, 4],
      [0, 2],
      [1, -1],
    ]);
    expectCase(
      [leafOf(rows), leafOf(tensor([1, 0]))],
      (x, y) => cosineSimilarity(x, y),
      [0.6, 0, Math.SQRT1_2],
      [
        [0.128, -0.096],
        [1, 0],
        [1.0606602, 1.0606602],
      ],
      [0, 0.6786796],
    );
    expect(cosineSimilarity(rows, tensor([1, 0]), 0).shape).toEqual([2]);
    expect(codeOf(() => cosineSimilarity(rows, tensor([1, 0, 0])))).toBe('ERR_TENSOR_SHAPE');
  });

  test('refuse operands that do not fit', () => {
    for (const loss of [l1Loss, mseLoss, huberLoss, smoothL1Loss, klDiv])
      expect(codeOf(() => loss(zeros([2, 3]), zeros([3, 2])))).toBe('ERR_TENSOR_SHAPE');
    for (const loss of [bce, bceWithLogits])
      expect(codeOf(() => loss(zeros([3, 1]), zeros([3])))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => huberLoss(a, b, { delta: 0 }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => smoothL1Loss(a, b, { beta: -1 }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => bce(a, b, { reduction: 'all' as never }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => cosineEmbeddingLoss(a, b, tensor([1])))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => l1Loss(tensor([1n]), tensor([1n])))).toBe('ERR_TENSOR_DTYPE');
    expect(l1Loss(tensor([1n]), tensor([3n]), { reduction: 'sum' }).item()).toBe(2);
    expect(mseLoss(tensor([1n, 2n]), tensor([0.5, 2])).item()).toBe(0.125);
  });

  test('dispose what they make on the way', () => {
    const step = (): void =>
      scope(() => {
        bceWithLogits(a, share(b))
          .add(crossEntropy(a, softmax(b).detach()))
          .backward();
      });
    // The first step allocates the gradients of the leaves.
    step();
    step();
    const before = memory();
    for (let i = 0; i < 5; i++) step();
    expect(memory()).toEqual(before);
    const loss = huberLoss(a, fixed);
    loss.dispose();
    expect(memory().tensors).toBe(before.tensors);
  });
});

describe('losses as modules', () => {
  const [a, b] = [leaf64([4, 3], 1), leaf64([4, 3], 2)];

  test('give what the functions give', () => {
    const signs = tensor([1, -1, 1, -1]);
    const soft = softmax(b);
    const pairs: [Tensor, Tensor][] = [
      [new CrossEntropyLoss({ weight }).forward(a, labels), crossEntropy(a, labels, { weight })],
      [new NLLLoss({ reduction: 'sum' }).forward(a, labels), nllLoss(a, labels, { reduction: 'sum' })],
      [new L1Loss().forward(a, b), l1Loss(a, b)],
      [new MSELoss({ reduction: 'sum' }).forward(a, b), a.sub(b).square().sum()],
      [new HuberLoss({ delta: 0.5 }).forward(a, b), huberLoss(a, b, { delta: 0.5 })],
      [new SmoothL1Loss({ beta: 0.5 }).forward(a, b), smoothL1Loss(a, b, { beta: 0.5 })],
      [
        new BCEWithLogitsLoss({ posWeight: weight }).forward(a, soft),
        bceWithLogits(a, soft, { posWeight: weight }),
      ],
      [
        new KLDivLoss({ reduction: 'batchmean' }).forward(a, soft),
        klDiv(a, soft, { reduction: 'batchmean' }),
      ],
      [
        new CosineEmbeddingLoss({ margin: 0.1 }).forward(a, b, signs),
        cosineEmbeddingLoss(a, b, signs, { margin: 0.1 }),
      ],
      [new CosineSimilarity({ dim: 0 }).forward(a, b).sum(), cosineSimilarity(a, b, 0).sum()],
    ];
    for (const [module, fn] of pairs) expect(module.item()).toBe(fn.item());
  });

  test("save their weights as buffers under PyTorch's names", () => {
    const loss = new BCEWithLogitsLoss({ weight: tensor([1]), posWeight: tensor([2]) });
    expect(Object.keys(loss.stateDict())).toEqual(['weight', 'pos_weight']);
    expect(loss.parameters()).toEqual([]);
  });
});
