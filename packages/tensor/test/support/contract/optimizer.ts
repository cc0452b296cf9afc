// Contract of kernels over many tensors: optimiser steps, by torch.optim's formulas (Lion: by its paper's) in float64
// for each element; the norm of all gradients; scaling.
import { describe, expect, test } from 'vitest';
import type { OptimizerRule } from '../../../src/backends/kernels.ts';
import type { DType } from '../../../src/core/dtype.ts';
import { expectClose, noise } from '../kernels-oracle.ts';
import { valuesOf, type Workbench } from './workbench.ts';

interface Cell {
  value: number;
  states: [number, number, number];
}

/** Returns one element after one step. `has` tells which of the three states the optimiser keeps. */
function stepped(
  rule: OptimizerRule,
  has: readonly boolean[],
  cell: Cell,
  slope: number,
  steps: number,
): Cell {
  const { lr, weightDecay } = rule;
  let { value } = cell;
  let [a, b, c] = cell.states;
  const ascent = rule.maximize ? -slope : slope;
  const decayed = ascent + weightDecay * value;
  if (rule.kind === 'sgd') {
    a = steps === 1 ? decayed : rule.momentum * a + (1 - rule.dampening) * decayed;
    value -= lr * (!has[0] ? decayed : rule.nesterov ? decayed + rule.momentum * a : a);
  } else if (rule.kind === 'adam') {
    const [beta, squareBeta] = rule.betas;
    if (rule.isDecoupled) value *= 1 - lr * weightDecay;
    const grad = rule.isDecoupled ? ascent : decayed;
    a = beta * a + (1 - beta) * grad;
    b = squareBeta * b + (1 - squareBeta) * grad ** 2;
    c = Math.max(b, c);
    const square = (has[2] ? c : b) / (1 - squareBeta ** steps);
    value -= (lr * a) / (1 - beta ** steps) / (Math.sqrt(square) + rule.epsilon);
  } else if (rule.kind === 'rmsprop') {
    a = rule.alpha * a + (1 - rule.alpha) * decayed ** 2;
    c = rule.alpha * c + (1 - rule.alpha) * decayed;
    const move = decayed / (Math.sqrt(has[2] ? a - c ** 2 : a) + rule.epsilon);
    b = rule.momentum * b + move;
    value -= lr * (has[1] ? b : move);
  } else {
    const [beta, stateBeta] = rule.betas;
    value = value * (1 - lr * weightDecay) - lr * Math.sign(beta * a + (1 - beta) * ascent);
    a = stateBeta * a + (1 - stateBeta) * ascent;
  }
  return { value, states: [a, b, c] };
}

const common = { lr: 0.05, weightDecay: 0.03, maximize: false };
const sgd = { ...common, kind: 'sgd', momentum: 0, dampening: 0, nesterov: false } as const;
const adam = { ...common, kind: 'adam', betas: [0.9, 0.95], epsilon: 1e-3, isDecoupled: false } as const;
const rmsprop = {
  ...common,
  kind: 'rmsprop',
  alpha: 0.9,
  epsilon: 1e-3,
  momentum: 0,
  centered: false,
} as const;
const lion = { ...common, kind: 'lion', betas: [0.9, 0.99] } as const;

export function optimizerContract(bench: Workbench): void {
  describe('optimize', () => {
    test.each<[string, OptimizerRule, number]>([
      ['sgd', { ...sgd, weightDecay: 0 }, 0],
      ['adam', { ...adam, weightDecay: 0 }, 2],
      ['adam with decoupled decay', { ...adam, weightDecay: 0, isDecoupled: true }, 2],
      ['rmsprop', { ...rmsprop, weightDecay: 0 }, 1],
      ['lion', { ...lion, weightDecay: 0 }, 1],
    ])('%s without decay keeps an infinite parameter', (_, rule, states) => {
      for (const dtype of ['float32', 'float64'] as const) {
        const count = 19;
        const row = (): ReturnType<typeof bench.put> => bench.put(dtype, new Array<number>(count).fill(0));
        const param = bench.put(dtype, new Array<number>(count).fill(Infinity));
        const grad = bench.put(dtype, new Array<number>(count).fill(0.5));
        const tensor = { param, grad, states: Array.from({ length: states }, row), count, steps: 1 };
        bench.kernels.optimize(rule, [tensor]);
        expect(valuesOf(param)).toEqual(new Array<number>(count).fill(Infinity));
        for (const state of tensor.states) expect(valuesOf(state)).not.toContain(NaN);
      }
    });

    test.each<[string, OptimizerRule, readonly boolean[]]>([
      ['sgd', sgd, [false]],
      [
        'sgd uphill, with momentum and dampening',
        { ...sgd, momentum: 0.8, dampening: 0.3, maximize: true },
        [true],
      ],
      ['sgd of Nesterov', { ...sgd, momentum: 0.9, nesterov: true }, [true]],
      ['adam', adam, [true, true, false]],
      ['adam uphill, with the largest mean square', { ...adam, maximize: true }, [true, true, true]],
      ['adam with decoupled decay', { ...adam, isDecoupled: true }, [true, true, false]],
      ['rmsprop', rmsprop, [true, false, false]],
      ['rmsprop, centered, with momentum', { ...rmsprop, centered: true, momentum: 0.7 }, [true, true, true]],
      ['lion', lion, [true]],
      ['lion uphill', { ...lion, maximize: true }, [true]],
    ])('%s: five steps of several tensors in one call', (_, rule, has) => {
      for (const dtype of ['float32', 'float64'] as const) {
        const tensors = [0, 1, 7, 33].map((count) => {
          const start = noise(count, count);
          return {
            count,
            want: start.map((value): Cell => ({ value: Math.fround(value), states: [0, 0, 0] })),
            param: bench.put(dtype, start.map(Math.fround)),
            states: has.map((isThere) =>
              isThere
                ? bench.put(
                    dtype,
                    start.map(() => 0),
                  )
                : null,
            ),
          };
        });
        for (let steps = 1; steps <= 5; steps++) {
          const rows = tensors.map((tensor) => {
            const grads = noise(tensor.count, 20 + steps).map(Math.fround);
            tensor.want = tensor.want.map((cell, i) => stepped(rule, has, cell, grads[i]!, steps));
            return { ...tensor, grad: bench.put(dtype, grads), steps };
          });
          bench.kernels.optimize(rule, rows);
        }
        for (const { want, param, states } of tensors) {
          expectClose(
            valuesOf(param),
            want.map((cell) => cell.value),
          );
          for (const [s, state] of states.entries())
            if (state)
              expectClose(
                valuesOf(state),
                want.map((cell) => cell.states[s]!),
              );
        }
      }
    });

    test.each([
      ['adam', { ...adam, weightDecay: 0, betas: [0, 0.95] }, 0],
      ['rmsprop, centered', { ...rmsprop, weightDecay: 0, alpha: 0, centered: true }, 2],
    ] as const)(
      '%s: a running mean that keeps nothing is the last gradient, however small',
      (_, rule, mean) => {
        const param = bench.floats([1]);
        const states = [0, 1, 2].map((i) => (rule.kind === 'adam' && i === 2 ? null : bench.floats([0])));
        for (const [i, slope] of [3, 5e-7].entries())
          bench.kernels.optimize(rule, [
            { param, grad: bench.floats([slope]), states, count: 1, steps: i + 1 },
          ]);
        expect(valuesOf(states[mean]!)).toEqual([Math.fround(5e-7)]);
      },
    );

    test('uses the part of a memory that an offset names, and nothing beside it', () => {
      const whole = bench.floats([1, 2, 3, 4]);
      const param = { ...whole, offset: 1 };
      const grad = { ...bench.floats([9, 1, 1]), offset: 1 };
      const rule = { ...sgd, weightDecay: 0, lr: 1 };
      bench.kernels.optimize(rule, [{ param, grad, states: [null], count: 2, steps: 1 }]);
      expect(valuesOf(whole)).toEqual([1, 1, 2, 4]);
    });
  });

  describe('totalNorm and scale', () => {
    const both: readonly DType[] = ['float32', 'float64'];

    test('the norm of all tensors as one vector', () => {
      const out = bench.dirty(1);
      const tensors = [bench.floats([3, 0]), bench.put('float64', [4]), bench.floats([])];
      bench.kernels.totalNorm(out, tensors, [2, 1, 0]);
      expect(valuesOf(out)).toEqual([5]);
      bench.kernels.totalNorm(out, [], []);
      expect(valuesOf(out)).toEqual([0]);
    });

    test('a norm whose square is no float32', () => {
      const out = bench.dirty(1);
      bench.kernels.totalNorm(out, [bench.floats([2 ** 100])], [1]);
      expect(valuesOf(out)).toEqual([2 ** 100]);
    });

    test.each(both)('scales %s by a number or by memory, and finds what is not finite', (dtype) => {
      const found = bench.floats([0]);
      const tensors = [bench.put(dtype, noise(33).map(Math.fround)), bench.put(dtype, [8])];
      const before = valuesOf(tensors[0]!);
      bench.kernels.scale(tensors, [33, 1], 0.5, found);
      bench.kernels.scale(tensors, [33, 1], bench.floats([0.25]), found);
      expect(valuesOf(tensors[0]!)).toEqual(before.map((x) => x / 8));
      expect([valuesOf(tensors[1]!), valuesOf(found)]).toEqual([[1], [0]]);
      for (const odd of [NaN, Infinity, -Infinity]) {
        for (const at of [0, 16, 32]) {
          const spoiled = bench.put(dtype, before.with(at, odd));
          bench.kernels.write(found.memory, 0, Float32Array.of(0));
          bench.kernels.scale([spoiled], [33], 1, null);
          expect(valuesOf(found)).toEqual([0]);
          bench.kernels.scale([tensors[1]!, spoiled], [1, 33], 1, found);
          expect(valuesOf(found)).toEqual([1]);
        }
      }
    });
  });
}
