// Contract of one step of an LSTM and of its gradient.
import { describe, expect, test } from 'vitest';
import type { DType } from '../../../src/core/dtype.ts';
import { expectClose, noise, tolerances } from '../kernels-oracle.ts';
import { valuesOf, type Workbench } from './workbench.ts';

const shapes: [rows: number, width: number][] = [
  [0, 3],
  [1, 1],
  [3, 5],
  [2, 16],
  [4, 33],
  [1, 200],
];
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

export function lstmContract(bench: Workbench): void {
  describe('lstm', () => {
    test.each(['float32', 'float64'] as DType[])('of %s, and its gradient', (dtype) => {
      for (const [rows, width] of shapes) {
        const count = rows * width;
        const sizes = { rows, width };
        const inputs = noise(4 * count).map((value) => 3 * value);
        const [h, c] = [noise(count, 2), noise(count, 3)];
        const [gates, hidden, cell] = [bench.put(dtype, inputs), bench.put(dtype, h), bench.put(dtype, c)];
        const [out, cellTanh] = [bench.dirty(count, dtype), bench.dirty(count, dtype)];
        const [hiddenBefore, cellBefore] = [bench.dirty(count, dtype), bench.dirty(count, dtype)];
        bench.kernels.lstm({ gates, hidden, cell, out, hiddenBefore, cellBefore, cellTanh }, sizes);

        const place = (at: number, gate: number): number =>
          at + Math.floor(at / width) * 3 * width + gate * width;
        const each = <T>(f: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => f(at));
        const values = inputs.map((value, i) =>
          Math.floor(i / width) % 4 === 2 ? Math.tanh(value) : sigmoid(value),
        );
        const gate = (at: number, which: number): number => values[place(at, which)]!;
        const next = each((at) => gate(at, 0) * gate(at, 2) + gate(at, 1) * c[at]!);
        const result = each((at) => gate(at, 3) * Math.tanh(next[at]!));
        const tolerance = 4 * tolerances[dtype];
        expectClose(valuesOf(gates), values, tolerance);
        expectClose(valuesOf(cell), next, tolerance);
        expectClose(valuesOf(cellTanh), next.map(Math.tanh), tolerance);
        expectClose(valuesOf(hidden), result, tolerance);
        expect(valuesOf(out)).toEqual(valuesOf(hidden));
        expectClose(valuesOf(hiddenBefore), h, 0.1 * tolerance);
        expectClose(valuesOf(cellBefore), c, 0.1 * tolerance);

        const [dh, dOut, dc] = [noise(count, 4), noise(count, 5), noise(count, 6)];
        const [gradHidden, gradOut] = [bench.put(dtype, dh), bench.put(dtype, dOut)];
        const [gradCell, gradGates] = [bench.put(dtype, dc), bench.dirty(4 * count, dtype)];
        bench.kernels.lstmGrad(
          { gradGates, gradCell, gates, cellBefore, cellTanh, gradHidden, gradOut },
          sizes,
        );
        const wantGates = Array<number>(4 * count);
        const wantCell = each((at) => {
          const [i, f, g, o] = [0, 1, 2, 3].map((which) => gate(at, which)) as [
            number,
            number,
            number,
            number,
          ];
          const tanh = Math.tanh(next[at]!);
          const ofHidden = dh[at]! + dOut[at]!;
          const ofCell = dc[at]! + ofHidden * o * (1 - tanh * tanh);
          const ofGates = [
            ofCell * g * i * (1 - i),
            ofCell * c[at]! * f * (1 - f),
            ofCell * i * (1 - g * g),
            ofHidden * tanh * o * (1 - o),
          ];
          for (const [which, value] of ofGates.entries()) wantGates[place(at, which)] = value;
          return ofCell * f;
        });
        expectClose(valuesOf(gradGates), wantGates, 2 * tolerance);
        expectClose(valuesOf(gradCell), wantCell, 2 * tolerance);
      }
    });
  });
}
