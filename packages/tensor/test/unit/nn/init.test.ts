// Tests the initialisers of nn.init.
import { describe, expect, test } from 'vitest';
import { generator, memory, type Tensor, zeros } from '../../../src/index.ts';
import { init, Linear } from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';

const options = (): { generator: ReturnType<typeof generator> } => ({ generator: generator(7) });

function statistics(tensor: Tensor): { mean: number; std: number; least: number; most: number } {
  const values = [...(tensor.dataSync() as Float32Array)];
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
  const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length;
  return { mean, std: Math.sqrt(variance), least: Math.min(...values), most: Math.max(...values) };
}

describe('init', () => {
  test('constants', () => {
    const t = zeros([2, 3]);
    expect(init.ones_(t)).toBe(t);
    expect(t.toArray()).toEqual([
      [1, 1, 1],
      [1, 1, 1],
    ]);
    expect(init.constant_(t, 4).at(0, 0).item()).toBe(4);
    expect(init.zeros_(t).sum().item()).toBe(0);
    expect(init.eye_(t).toArray()).toEqual([
      [1, 0, 0],
      [0, 1, 0],
    ]);
  });

  test('uniform and normal numbers, repeatable from a generator', () => {
    const { mean, least, most } = statistics(init.uniform_(zeros([100, 100]), -2, 4, options()));
    expect(mean).toBeCloseTo(1, 1);
    expect(least).toBeGreaterThanOrEqual(-2);
    expect([least < -1.9, most < 4, most > 3.9]).toEqual([true, true, true]);
    const normal = statistics(init.normal_(zeros([100, 100]), 3, 0.5, options()));
    expect(normal.mean).toBeCloseTo(3, 1);
    expect(normal.std).toBeCloseTo(0.5, 1);
    const [a, b] = [zeros([5]), zeros([5])].map((t) => init.normal_(t, 0, 1, options()).toArray());
    expect(a).toEqual(b);
  });

  test('a truncated normal distribution: nothing outside, and the right shares inside', () => {
    const t = init.truncNormal_(zeros([200, 200]), { ...options(), mean: 1, std: 2, low: -1, high: 2 });
    const { least, most } = statistics(t);
    expect([least >= -1, most <= 2]).toEqual([true, true]);
    // A normal number of mean 1 and deviation 2, cut to [−1, 2], is below 1 with the probability
    // (Φ(0) − Φ(−1)) / (Φ(½) − Φ(−1)).
    const values = [...(t.dataSync() as Float32Array)];
    expect(values.filter((x) => x < 1).length / values.length).toBeCloseTo(0.3413 / 0.5328, 2);
    const wide = statistics(init.truncNormal_(zeros([200, 200]), { ...options(), low: -50, high: 50 }));
    expect(wide.mean).toBeCloseTo(0, 1);
    expect(wide.std).toBeCloseTo(1, 1);
    expect(codeOf(() => init.truncNormal_(t, { std: 0 }))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('ranges must not be reversed', () => {
    expect(() => init.uniform_(zeros([2]), 1, 0)).toThrow(
      'uniform_: high: expected a number ≥ 1, the lower limit, got 0.',
    );
    expect(() => init.truncNormal_(zeros([2]), { low: 3 })).toThrow(
      'truncNormal_: high: expected a number ≥ 3, the lower limit, got 2.',
    );
    expect(init.uniform_(zeros([2]), 3, 3).toArray()).toEqual([3, 3]);
  });

  test('numbers come by position, which PyTorch also takes by keyword', () => {
    // biome-ignore lint/suspicious/noExplicitAny: objects are not in the types
    const { normal_, uniform_ } = init as any;
    expect(() => normal_(zeros([2]), { std: 0.02 })).toThrow(
      'normal_: expected numbers, got an object. Pass them by position: normal_(tensor, 0, 0.02), mean and standard deviation.',
    );
    expect(() => uniform_(zeros([2]), { a: -1, b: 1 })).toThrow(
      'uniform_(tensor, -0.1, 0.1), lower limit and',
    );
  });

  test('Xavier and Kaiming have the spread of their formulas, kernels included', () => {
    const make = (): Tensor => zeros([40, 30, 3, 3]);
    const [fanIn, fanOut] = [270, 360];
    const xavier = 1.5 * Math.sqrt(2 / (fanIn + fanOut));
    expect(statistics(init.xavierNormal_(make(), { ...options(), gain: 1.5 })).std / xavier).toBeCloseTo(
      1,
      1,
    );
    const bounded = statistics(init.xavierUniform_(make(), { ...options(), gain: 1.5 }));
    expect(bounded.std / xavier).toBeCloseTo(1, 1);
    expect(bounded.most).toBeLessThanOrEqual(xavier * Math.sqrt(3) * 1.000001);
    const kaiming = Math.sqrt(2 / fanIn);
    expect(
      statistics(init.kaimingNormal_(make(), { ...options(), nonlinearity: 'relu' })).std / kaiming,
    ).toBeCloseTo(1, 1);
    const back = statistics(init.kaimingUniform_(make(), { ...options(), mode: 'fanOut', a: 2 }));
    expect(back.std / Math.sqrt(2 / 5 / fanOut)).toBeCloseTo(1, 1);
  });

  test('gains are those of PyTorch', () => {
    expect(
      ['linear', 'sigmoid', 'tanh', 'relu', 'selu'].map((name) => init.calculateGain(name as 'relu')),
    ).toEqual([1, 1, 5 / 3, Math.SQRT2, 0.75]);
    expect(init.calculateGain('leakyRelu', 1)).toBe(1);
    expect(codeOf(() => init.calculateGain('cubic' as never))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test.each([[[4, 9]], [[9, 4]], [[3, 2, 2]]])('orthogonal rows or columns in shape %j', (shape) => {
    const matrix = init.orthogonal_(zeros(shape), { ...options(), gain: 2 }).reshape([shape[0]!, -1]);
    const wide = matrix.shape[0]! <= matrix.shape[1]! ? matrix : matrix.t();
    const product = wide.matmul(wide.t()).toArray() as number[][];
    for (const [i, row] of product.entries())
      for (const [j, value] of row.entries()) expect(value).toBeCloseTo(i === j ? 4 : 0, 5);
  });

  test.each(Object.keys(init).filter((name) => name.endsWith('_')))(
    '%s refuses what is no tensor',
    (name) => {
      const write = init[name as 'constant_'];
      for (const value of [undefined, null, 3, {}, [[1]]])
        expect(() => write(value as never, ...((name === 'constant_' ? [1] : []) as [number]))).toThrow(
          `${name}: expected a tensor, got `,
        );
    },
  );

  test('calculateGain refuses values of another kind', () => {
    for (const slope of [Symbol('slope'), 1n, '1', Object.create(null)])
      expect(codeOf(() => init.calculateGain('leakyRelu', slope as never))).toBe('ERR_TENSOR_ARGUMENT');
    for (const name of [Symbol('relu'), 1n, Object.create(null)])
      expect(codeOf(() => init.calculateGain(name as never))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('leaves tensors without elements as they are', () => {
    const all = [
      init.kaimingUniform_,
      init.kaimingNormal_,
      init.xavierUniform_,
      init.xavierNormal_,
      init.orthogonal_,
    ];
    for (const write of all)
      for (const shape of [
        [3, 0],
        [0, 3],
        [0, 0],
        [2, 3, 0],
      ]) {
        const empty = zeros(shape);
        expect(write(empty)).toBe(empty);
      }
    expect(init.kaimingNormal_(zeros([0, 3]), { mode: 'fanOut' }).count).toBe(0);
  });

  test('writes parameters, also strided ones of other dtypes, and leaves no memory behind', () => {
    const layer = new Linear(3, 3).to('float64');
    const before = memory().tensors;
    init.kaimingUniform_(layer.weight, { a: Math.sqrt(5) });
    init.zeros_(layer.bias!);
    init.orthogonal_(layer.weight);
    expect(memory().tensors).toBe(before);
    expect([layer.weight.requiresGrad, layer.weight.dtype]).toEqual([true, 'float64']);
    init.ones_(layer.weight.detach().t());
    expect(layer.weight.sum().item()).toBe(9);
    expect(codeOf(() => init.xavierUniform_(zeros([3])))).toBe('ERR_TENSOR_SHAPE');
  });
});
