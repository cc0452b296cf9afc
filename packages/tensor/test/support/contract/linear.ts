// Contract of linear layers with an activation, and of its gradient.
import { describe, expect, test } from 'vitest';
import { type Activation, activations } from '../../../src/backends/declarations/names.ts';
import type { DType } from '../../../src/core/dtype.ts';
import { expectClose, noise, product64, slopes, tolerances, transposed, unaries } from '../kernels-oracle.ts';
import { valuesOf, type Workbench } from './workbench.ts';

const shapes: [rows: number, outs: number, ins: number][] = [
  [1, 1, 1],
  [3, 5, 7],
  [2, 40, 33],
  [33, 65, 17],
  [150, 20, 9],
  [40, 300, 410],
  [200, 70, 130],
];
const types: DType[] = ['float32', 'float64'];
const functions: Readonly<Record<Activation, (x: number) => number>> = { ...unaries, none: (x) => x };
const gradients: Readonly<Record<Exclude<Activation, 'none'>, (grad: number, saved: number) => number>> = {
  relu: (grad, out) => (out <= 0 ? 0 : grad),
  gelu: slopes.geluGrad,
  geluTanh: slopes.geluTanhGrad,
};

export function linearContract(bench: Workbench): void {
  // The software device takes seconds for the larger shapes, and so does the oracle's gelu.
  const shapesFor = (activation: Activation): typeof shapes => {
    if (bench.device !== 'cpu') return shapes.slice(0, 4);
    return activation === 'gelu' ? shapes.slice(0, 5) : shapes;
  };
  const check = (dtype: DType, activation: Activation, hasBias: boolean, keeps: boolean): void => {
    for (const [rows, outs, ins] of shapesFor(activation)) {
      const [x, w, b] = [noise(rows * ins), noise(outs * ins, 2), noise(outs, 3)];
      const before = keeps ? bench.dirty(rows * outs, dtype) : null;
      const out = bench.dirty(rows * outs, dtype);
      const bias = hasBias ? bench.put(dtype, b) : null;
      const operands = { out, before, bias, x: bench.put(dtype, x), w: bench.put(dtype, w) };
      bench.kernels.linear(operands, { rows, outs, ins, activation });
      const sums = product64(x, transposed(w, outs, ins), rows, outs, ins).map(
        (sum, i) => sum + (hasBias ? b[i % outs]! : 0),
      );
      const tolerance = (tolerances[dtype] / 3) * Math.max(4, ins);
      if (before) expectClose(valuesOf(before), sums, tolerance);
      expectClose(valuesOf(out), sums.map(functions[activation]), tolerance);
    }
  };

  describe('linear', () => {
    test.each(types.flatMap((dtype) => activations.map((activation) => [activation, dtype] as const)))(
      '%s of %s, with and without bias, keeping the sums before the activation or not',
      (activation, dtype) => {
        for (const hasBias of [true, false])
          for (const keeps of [true, false]) check(dtype, activation, hasBias, keeps);
      },
    );

    test('without inputs the bias is left', () => {
      const [out, bias] = [bench.dirty(6), bench.floats([1, -2, 3])];
      const nothing = bench.floats([0]);
      bench.kernels.linear(
        { out, before: null, x: nothing, w: nothing, bias },
        { rows: 2, outs: 3, ins: 0, activation: 'relu' },
      );
      expect(valuesOf(out)).toEqual([1, 0, 3, 1, 0, 3]);
    });

    test.each(
      types.flatMap((dtype) => (['relu', 'gelu', 'geluTanh'] as const).map((name) => [name, dtype] as const)),
    )('gradient of %s in %s, and its sums over the rows', (activation, dtype) => {
      for (const [rows, outs] of [...shapesFor(activation), [0, 3], [300, 7], [3, 1100]] as const) {
        const [g, s] = [noise(rows * outs), noise(rows * outs, 2)];
        const [grad, saved] = [bench.put(dtype, g), bench.put(dtype, s)];
        const want = g.map((value, i) => gradients[activation](value, s[i]!));
        const sums = Array.from({ length: outs }, (_, j) =>
          Array.from({ length: rows }, (_, r) => want[r * outs + j]!).reduce((a, b) => a + b, 0),
        );
        const [out, bias] = [bench.dirty(rows * outs, dtype), bench.dirty(outs, dtype)];
        bench.kernels.linearGrad(
          { gradBefore: out, gradBias: bias, grad, saved },
          { activation, rows, outs },
        );
        // The oracle's slope is a difference quotient.
        const tolerance = Math.max(tolerances[dtype], 1e-8);
        expectClose(valuesOf(out), want, tolerance);
        expectClose(valuesOf(bias), sums, tolerance * Math.max(8, rows));
        bench.kernels.linearGrad(
          { gradBefore: grad, gradBias: null, grad, saved },
          { activation, rows, outs },
        );
        expect(valuesOf(grad)).toEqual(valuesOf(out));
      }
    });
  });
}
