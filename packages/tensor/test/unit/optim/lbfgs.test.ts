// Tests L-BFGS: what it takes, its state, and functions that plain descent cannot minimise.
import { describe, expect, test } from 'vitest';
import { memory, scope, type Tensor, tensor } from '../../../src/index.ts';
import { parameter } from '../../../src/nn/index.ts';
import { GradScaler, LBFGS, type LBFGSOptions, type OptimizerState } from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

const leaf = (...values: number[]): Tensor => parameter(tensor(values, { dtype: 'float64' }));

/** Returns the closure of Rosenbrock's function of two parameters, whose minimum is at (1, 1). */
const rosenbrock = (optimizer: LBFGS) => (): Tensor => {
  optimizer.zeroGrad();
  const [x, y] = optimizer.params as [Tensor, Tensor];
  const bend = y.sub(x.square()).square().mul(100).sum();
  const loss = x.neg().add(1).square().sum().add(bend);
  loss.backward();
  return loss;
};

describe('LBFGS', () => {
  test('finds the minimum of a bent valley by line search', () => {
    const optimizer = new LBFGS([leaf(-1.2), leaf(1)], { maxIter: 100, lineSearchFn: 'strong_wolfe' });
    const first = optimizer.step(rosenbrock(optimizer));
    expect(first.item()).toBeCloseTo(24.2, 10);
    for (const param of optimizer.params) expect(param.item()).toBeCloseTo(1, 4);
  });

  test('makes no step where the gradient is small', () => {
    const optimizer = new LBFGS([leaf(1), leaf(1)]);
    optimizer.step(rosenbrock(optimizer));
    expect([optimizer.params.map((param) => param.item()), optimizer.stateDict().steps]).toEqual([
      [1, 1],
      [0, 0],
    ]);
  });

  test('stops at the most evaluations', () => {
    const optimizer = new LBFGS([leaf(-1.2), leaf(1)], { maxIter: 20, maxEval: 3, lr: 1e-3 });
    let calls = 0;
    const run = rosenbrock(optimizer);
    optimizer.step(() => {
      calls++;
      return run();
    });
    expect(calls).toBe(3);
  });

  test.each([null, 'strong_wolfe'] as const)(
    'resumes from its state to the last bit (%s)',
    (lineSearchFn) => {
      const options: LBFGSOptions = { maxIter: 3, historySize: 4, lr: lineSearchFn ? 1 : 1e-3, lineSearchFn };
      const one = new LBFGS([leaf(-1.2), leaf(1)], options);
      for (let i = 0; i < 3; i++) one.step(rosenbrock(one));
      const copies = one.params.map((param) => parameter(param.detach().clone()));
      const two = new LBFGS(copies, options);
      const { groups, steps, tensors } = one.stateDict();
      expect(Object.keys(tensors)).toContain('oldDirs.0');
      two.loadStateDict({ ...JSON.parse(JSON.stringify({ groups, steps })), tensors } as OptimizerState);
      for (const each of [one, two]) for (let i = 0; i < 2; i++) each.step(rosenbrock(each));
      expect(copies.map((copy) => copy.item())).toEqual(one.params.map((param) => param.item()));
    },
  );

  test('leaves the parameters where they were if the function throws during a line search', () => {
    const optimizer = new LBFGS([leaf(-1.2), leaf(1)], { lineSearchFn: 'strong_wolfe' });
    let evaluations = 0;
    const failing = () => {
      if (++evaluations === 2) throw new Error('no data');
      return rosenbrock(optimizer)();
    };
    expect(() => optimizer.step(failing)).toThrow('no data');
    expect(optimizer.params.map((param) => param.item())).toEqual([-1.2, 1]);
  });

  test('names what is wrong with a state, and changes nothing', () => {
    const one = new LBFGS([leaf(-1.2), leaf(1)], { maxIter: 3, lr: 1e-3 });
    one.step(rosenbrock(one));
    const two = new LBFGS([leaf(-1.2, 3), leaf(1)], { lr: 0.5 });
    const saved = one.stateDict();
    const { 'd.0': _, ...rest } = saved.tensors;
    expect(() => two.loadStateDict({ ...saved, tensors: { ...rest, x: leaf(1) } })).toThrow(
      'prevFlatGrad.0 expected [3], got [2]; oldDirs.0 expected [1, 3], got [1, 2]; ' +
        'oldStps.0 expected [1, 3], got [1, 2]; unexpected x; missing d.0. Nothing was changed.',
    );
    expect(two.lr).toBe(0.5);
  });

  test('keeps as much memory as before once its history is full', () => {
    const optimizer = new LBFGS([leaf(-1.2), leaf(1)], { maxIter: 3, historySize: 2, lr: 1e-3 });
    const step = (): void => scope(() => optimizer.step(rosenbrock(optimizer)).dispose());
    for (let i = 0; i < 3; i++) step();
    const before = memory().tensors;
    for (let i = 0; i < 5; i++) step();
    expect(memory().tensors).toBe(before);
  });

  test('refuses what it cannot do', () => {
    const optimizer = new LBFGS([leaf(1)]);
    expect(() => optimizer.step()).toThrow('LBFGS: step: expected a function that computes the loss');
    expect(() => new GradScaler({ enabled: false }).step(optimizer)).toThrow(
      'LBFGS: step: expected a function',
    );
    expect(() => new LBFGS([{ params: [leaf(1)] }, { params: [leaf(1)] }])).toThrow('expected one group');
    const mixed = new LBFGS([leaf(1), parameter(tensor([1]))]);
    expect(() => mixed.step(() => tensor(0))).toThrow('expected parameters of one dtype on one device');
    for (const options of [{ maxIter: 0 }, { historySize: 0.5 }, { lineSearchFn: 'armijo' }, { lr: -1 }])
      expect(codeOf(() => new LBFGS([leaf(1)], options as never))).toBe('ERR_TENSOR_ARGUMENT');
  });
});
