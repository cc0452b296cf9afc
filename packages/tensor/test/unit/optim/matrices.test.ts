// Tests the optimisers whose state or step depends on the shapes of parameters, and those with numbers as state.
import { describe, expect, test } from 'vitest';
import { ones, scope, type Tensor, tensor } from '../../../src/index.ts';
import { parameter } from '../../../src/nn/index.ts';
import { Adafactor, ASGD, GradScaler, Muon, NAdam, type Optimizer } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

const leaf = (shape: readonly number[]): Tensor => parameter(ones(shape));

function stepOn(optimizer: Optimizer): void {
  scope(() => {
    optimizer.zeroGrad();
    for (const param of optimizer.params) param.square().mul(0.5).sum().backward();
    optimizer.step();
  });
}

describe('state', () => {
  test('of Adafactor is a row and a column for a matrix', () => {
    const optimizer = new Adafactor([leaf([2, 3, 4]), leaf([5])]);
    stepOn(optimizer);
    const { tensors } = optimizer.stateDict();
    expect(Object.entries(tensors).map(([name, { shape }]) => [name, shape])).toEqual([
      ['rowVar.0', [2, 3, 1]],
      ['colVar.0', [2, 1, 4]],
      ['variance.1', [5]],
    ]);
    const other = new Adafactor([leaf([2, 3, 4]), leaf([5])]);
    const wrong = { ...optimizer.stateDict(), tensors: { ...tensors, 'rowVar.0': ones([2, 3, 4]) } };
    expect(() => other.loadStateDict(wrong)).toThrow('rowVar.0 expected [2, 3, 1], got [2, 3, 4]');
    other.loadStateDict(optimizer.stateDict());
    expect(other.stateDict().tensors['colVar.0']!.toArray()).toEqual(tensors['colVar.0']!.toArray());
  });

  test('numbers are float64 without dimensions', () => {
    const optimizer = new NAdam([leaf([2])]);
    stepOn(optimizer);
    const { 'muProduct.0': product } = optimizer.stateDict().tensors;
    expect([product!.dtype, product!.shape]).toEqual(['float64', []]);
    expect(product!.item()).toBeCloseTo(0.9 * (1 - 0.5 * 0.96 ** 0.004), 12);
  });

  test('a changed rate of ASGD counts from the step after the next', () => {
    const optimizer = new ASGD([leaf([1])], { lr: 0.5, lambd: 0 });
    stepOn(optimizer);
    optimizer.lr = 0.25;
    stepOn(optimizer);
    expect(optimizer.params[0]!.item()).toBe(0.25);
    stepOn(optimizer);
    expect(optimizer.params[0]!.item()).toBe(0.25 * 0.75);
  });
});

describe('Muon', () => {
  test('takes matrices only', () => {
    expect(() => new Muon([leaf([2, 2]), leaf([3])])).toThrow(
      'Muon: params: expected matrices, got a parameter of shape [3]',
    );
    const optimizer = new Muon([leaf([2, 2])]);
    expect(() => optimizer.addParamGroup({ params: [leaf([2, 2, 2])] })).toThrow('expected matrices');
    for (const options of [
      { nsSteps: 100 },
      { nsCoefficients: [1, 2] },
      { adjustLrFn: 'other' },
      { momentum: -1 },
    ])
      expect(codeOf(() => new Muon([leaf([2, 2])], options as never))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('makes all singular values of a step about as large', () => {
    const param = parameter(tensor([4, 0, 0, 0.25], { shape: [2, 2] }));
    const optimizer = new Muon([param], { lr: 1, weightDecay: 0 });
    stepOn(optimizer);
    const [[a, b], [c, d]] = param.toArray() as [[number, number], [number, number]];
    for (const step of [4 - a, 0.25 - d]) expect(step).toBeGreaterThan(0.6);
    for (const step of [4 - a, 0.25 - d]) expect(step).toBeLessThan(1.3);
    expect([b, c]).toEqual([0, 0]);
  });
});

test('a step that the scaler skips changes neither parameters nor state', () => {
  const optimizer = new NAdam([leaf([2])]);
  const scaler = new GradScaler();
  scope(() => scaler.scale(optimizer.params[0]!.mul(Infinity).sum()).backward());
  expect(scaler.step(optimizer)).toBe(false);
  expect([optimizer.params[0]!.toArray(), optimizer.stateDict().steps]).toEqual([[1, 1], [0]]);
});
