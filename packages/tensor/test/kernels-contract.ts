// What every kernel set promises, kernel by kernel, against plain float64 arithmetic written a second time in
// kernels-oracle.ts. A kernel set's test file calls kernelsContract(name, load) and nothing else.
import { beforeAll, describe, expect, test } from 'vitest';
import type { BinaryOp, DType, Kernels, Memory, UnaryOp } from '../src/kernels.ts';
import {
  binaries,
  columns,
  dtypes,
  expectClose,
  flags,
  gather,
  hostOf,
  integerBinaries,
  integers,
  list,
  logSoftmax64,
  noise,
  numbers,
  product,
  product64,
  rowsOf,
  sgd64,
  sizes,
  special,
  transposed,
  unaries,
} from './kernels-oracle.ts';

/** Registers the suite; `load` is called once, inside it. */
export function kernelsContract(name: string, load: () => Kernels): void {
  describe(`${name} kernels`, () => {
    let k: Kernels;
    beforeAll(() => {
      k = load();
    });

    const put = (dtype: DType, values: readonly number[]): Memory => {
      const memory = k.alloc(dtype, values.length);
      memory.host.set(hostOf(dtype, values) as never);
      return memory;
    };
    const floats = (values: readonly number[]): Memory => put('float32', values);
    /** Memory full of a value that no kernel may leave behind or read. */
    const dirty = (count: number, dtype: DType = 'float32'): Memory => put(dtype, Array(count).fill(12345));
    const release = (...all: Memory[]): void => {
      for (const memory of all) k.free(memory);
    };

    describe('memory', () => {
      test.each(dtypes)('alloc gives %s memory that JavaScript can read and write', (dtype) => {
        for (const count of sizes) {
          const memory = k.alloc(dtype, count);
          expect(memory).toMatchObject({ dtype, count });
          expect(memory.host.constructor).toBe(hostOf(dtype, []).constructor);
          expect(memory.host.length).toBe(count);
          k.fill(memory, 3);
          expect(numbers(memory.host)).toEqual(Array(count).fill(3));
          release(memory);
        }
      });

      test('pieces of memory that are alive do not share elements', () => {
        const all = Array.from({ length: 50 }, (_, i) => put('float32', Array(i).fill(i)));
        for (const [i, memory] of all.entries()) expect(list(memory.host)).toEqual(Array(i).fill(i));
        release(...all);
      });

      test('adopt computes in the memory of the array that was given, also in the middle of a buffer', () => {
        const whole = Float32Array.from(noise(32));
        const part = whole.subarray(3, 20);
        const want = Array.from(whole, (x, i) => (i >= 3 && i < 20 ? -x : x));
        const memory = k.adopt(part);
        expect(memory).toMatchObject({ dtype: 'float32', count: 17 });
        k.unary('neg', memory, memory);
        expect(Array.from(whole)).toEqual(want);
        release(memory);
        expect(Array.from(whole)).toEqual(want);
        for (const array of [new Int32Array(3), new BigInt64Array(3), new Float32Array(0)]) {
          const other = k.adopt(array);
          expect(other.count).toBe(array.length);
          release(other);
        }
      });
    });

    describe('movement', () => {
      test.each(dtypes)('fill writes every %s', (dtype) => {
        for (const count of sizes) {
          const memory = dirty(count, dtype);
          k.fill(memory, -7);
          expect(numbers(memory.host)).toEqual(Array(count).fill(-7));
          release(memory);
        }
      });

      test('copy converts between all dtypes, towards zero', () => {
        for (const from of dtypes) {
          for (const to of dtypes) {
            for (const count of sizes) {
              const values = from === 'float32' ? noise(count).map((x) => x * 9) : integers(count);
              const a = put(from, values);
              const out = dirty(count, to);
              k.copy(out, a);
              const want = numbers(a.host).map((x) => (to === 'float32' ? x : Math.trunc(x) + 0));
              expect(numbers(out.host)).toEqual(want);
              release(a, out);
            }
          }
        }
      });

      test.each(dtypes)('strided reads %s transposed, broadcast, sliced and empty', (dtype) => {
        const a = put(dtype, integers(120));
        const cases: [shape: number[], strides: number[], offset: number][] = [
          [[], [], 5],
          [[120], [1], 0],
          [[10, 12], [1, 10], 0],
          [[12, 10], [10, 1], 0],
          [[3, 40], [0, 1], 7],
          [[40, 3], [1, 0], 7],
          [[4, 5, 6], [1, 4, 20], 0],
          [[5, 4, 3, 2], [2, 10, 40, 1], 0],
          [[2, 3, 2, 2, 2], [60, 20, 10, 5, 0], 1],
          [[7, 1, 9], [9, 50, 1], 11],
          [[0, 4], [4, 1], 0],
          [[3, 0], [1, 3], 0],
        ];
        for (const [shape, strides, offset] of cases) {
          const out = dirty(product(shape), dtype);
          k.strided(out, a, shape, strides, offset);
          expect(list(out.host)).toEqual(gather(a.host, shape, strides, offset));
          release(out);
        }
        release(a);
      });
    });

    describe('elementwise', () => {
      test.each(Object.keys(unaries) as UnaryOp[])('unary %s', (op) => {
        for (const count of sizes) {
          const values = op === 'log' || op === 'sqrt' ? noise(count).map(Math.abs) : noise(count);
          const a = floats(values);
          const out = dirty(count);
          k.unary(op, out, a);
          expectClose(
            out.host,
            values.map((x) => unaries[op](Math.fround(x))),
          );
          k.unary(op, a, a);
          expect(a.host).toEqual(out.host);
          release(a, out);
        }
      });

      test.each(Object.keys(unaries) as UnaryOp[])(
        'unary %s of NaN, infinities, zeros and extremes',
        (op) => {
          // Repeated, so that both the vector part and the tail of a kernel see each of them.
          const values = Array.from({ length: 5 }, () => special)
            .flat()
            .map(Math.fround);
          const a = floats(values);
          k.unary(op, a, a);
          expectClose(a.host, values.map(unaries[op]));
          release(a);
        },
      );

      test.each(Object.keys(binaries) as BinaryOp[])('binary %s, equal shapes, also in place', (op) => {
        for (const count of sizes) {
          const left = noise(count, 2);
          const right = noise(count, 3);
          for (let i = 0; i < count; i += 5) right[i] = left[i]!;
          const want = left.map((x, i) => binaries[op](x, right[i]!));
          const [a, b, out] = [floats(left), floats(right), dirty(count)];
          k.binary(op, out, a, b, [count], [1], [1]);
          expectClose(out.host, want);
          const [a2, b2] = [floats(left), floats(right)];
          k.binary(op, a2, a2, b, [count], [1], [1]);
          k.binary(op, b2, a, b2, [count], [1], [1]);
          expect(a2.host).toEqual(out.host);
          expect(b2.host).toEqual(out.host);
          release(a, b, out, a2, b2);
        }
      });

      test.each(Object.keys(binaries) as BinaryOp[])('binary %s of special values', (op) => {
        // sigmoid and tanh never put out more than 1.
        const outputs = op === 'sigmoidGrad' || op === 'tanhGrad' ? [NaN, 0, -0, 0.5, 1, -1] : special;
        const left = special.flatMap((x) => outputs.map(() => Math.fround(x)));
        const right = special.flatMap(() => outputs.map(Math.fround));
        const [a, b, out] = [floats(left), floats(right), dirty(left.length)];
        k.binary(op, out, a, b, [left.length], [1], [1]);
        expectClose(
          out.host,
          left.map((x, i) => Math.fround(binaries[op](x, right[i]!))),
        );
        release(a, b, out);
      });

      test.each(dtypes)('binary broadcasts %s over any strides', (dtype) => {
        const left = integers(210, 4);
        const right = integers(210, 5);
        const [a, b] = [put(dtype, left), put(dtype, right)];
        const cases: [shape: number[], aStrides: number[], bStrides: number[]][] = [
          [[], [], []],
          [[33], [1], [0]],
          [[33], [0], [1]],
          [
            [17, 12],
            [12, 1],
            [0, 1],
          ],
          [
            [17, 12],
            [12, 1],
            [1, 0],
          ],
          [
            [17, 12],
            [0, 1],
            [12, 1],
          ],
          [
            [17, 12],
            [1, 17],
            [12, 1],
          ],
          [
            [7, 5, 6],
            [30, 6, 1],
            [6, 0, 1],
          ],
          [
            [7, 5, 6],
            [5, 1, 0],
            [0, 6, 1],
          ],
          [
            [2, 3, 5, 7],
            [105, 35, 7, 1],
            [0, 7, 0, 1],
          ],
          [
            [0, 3],
            [3, 1],
            [0, 1],
          ],
          [
            [3, 0],
            [0, 1],
            [0, 1],
          ],
        ];
        const ops = dtype === 'float32' ? (['add', 'lt', 'div'] as BinaryOp[]) : integerBinaries;
        for (const [shape, aStrides, bStrides] of cases) {
          const x = gather(a.host, shape, aStrides, 0).map(Number);
          const y = gather(b.host, shape, bStrides, 0).map(Number);
          for (const op of ops) {
            const out = dirty(x.length, dtype);
            k.binary(op, out, a, b, shape, aStrides, bStrides);
            expectClose(
              out.host,
              x.map((value, i) => binaries[op](value, y[i]!)),
            );
            release(out);
          }
        }
        release(a, b);
      });

      test('binary adds a row into dense memory in place, as a bias is added', () => {
        for (const [rows, cols] of [
          [1, 1],
          [3, 17],
          [32, 33],
          [65, 10],
        ] as const) {
          const values = noise(rows * cols);
          const bias = noise(cols, 9);
          const [a, b] = [floats(values), floats(bias)];
          k.binary('add', a, a, b, [rows, cols], [cols, 1], [0, 1]);
          expectClose(
            a.host,
            values.map((x, i) => x + bias[i % cols]!),
          );
          release(a, b);
        }
      });

      test('integer arithmetic wraps around', () => {
        const small = [put('int32', [2 ** 31 - 1, 65537]), put('int32', [1, 65537])] as const;
        const out32 = dirty(2, 'int32');
        k.binary('add', out32, ...small, [2], [1], [1]);
        expect(list(out32.host)).toEqual([-(2 ** 31), 131074]);
        k.binary('mul', out32, ...small, [2], [1], [1]);
        expect(list(out32.host)).toEqual([2 ** 31 - 1, 131073]);
        const [a, b, out64] = [k.alloc('int64', 1), k.alloc('int64', 1), k.alloc('int64', 1)];
        a.host[0] = 2n ** 62n;
        b.host[0] = 3n;
        k.binary('mul', out64, a, b, [1], [1], [1]);
        expect(out64.host[0]).toBe(BigInt.asIntN(64, 3n * 2n ** 62n));
        release(...small, out32, a, b, out64);
      });

      test('affine and axpy, in place and not', () => {
        for (const count of sizes) {
          const values = noise(count);
          const [a, out, sum] = [floats(values), dirty(count), floats(noise(count, 8))];
          k.affine(out, a, -1.5, 0.25);
          expectClose(
            out.host,
            values.map((x) => x * -1.5 + 0.25),
          );
          k.axpy(sum, a, 0.3);
          expectClose(
            sum.host,
            noise(count, 8).map((x, i) => x + values[i]! * 0.3),
          );
          k.affine(a, a, 2, 0);
          expectClose(
            a.host,
            values.map((x) => x * 2),
          );
          release(a, out, sum);
        }
      });
    });

    describe('reductions', () => {
      const shapes: [outer: number, size: number, inner: number][] = [
        [1, 1, 1],
        [1, 1000, 1],
        [1, 4099, 1],
        [1, 32, 512],
        [32, 512, 1],
        [3, 17, 5],
        [17, 3, 33],
        [5, 65, 9],
        [2, 0, 3],
        [0, 4, 3],
        [4, 3, 0],
      ];

      test.each(dtypes)('sum and max of %s over the middle', (dtype) => {
        for (const [outer, size, inner] of shapes) {
          const values = dtype === 'float32' ? noise(outer * size * inner) : integers(outer * size * inner);
          const a = put(dtype, values);
          for (const op of ['sum', 'max'] as const) {
            if (op === 'max' && size === 0 && dtype !== 'float32') continue;
            const out = dirty(outer * inner, dtype);
            k.reduce(op, out, a, outer, size, inner);
            const want = columns(values, outer, size, inner).map((column) =>
              op === 'sum' ? column.reduce((x, y) => x + y, 0) : Math.max(...column),
            );
            expectClose(out.host, want, 5e-6);
            release(out);
          }
          release(a);
        }
      });

      test('a long float32 sum keeps six digits', () => {
        const count = 1 << 20;
        const [a, out] = [k.alloc('float32', count), dirty(1)];
        k.fill(a, 0.1);
        k.reduce('sum', out, a, 1, count, 1);
        expect(Number(out.host[0]) / (Math.fround(0.1) * count)).toBeCloseTo(1, 6);
        release(a, out);
      });

      test('sum and max propagate NaN wherever it stands', () => {
        for (const [outer, size, inner] of [
          [1, 33, 1],
          [1, 33, 17],
          [3, 9, 1],
        ] as const) {
          for (let s = 0; s < size; s++) {
            const values = noise(outer * size * inner);
            for (let o = 0; o < outer; o++) values[(o * size + s) * inner] = NaN;
            const a = floats(values);
            for (const op of ['sum', 'max'] as const) {
              const out = dirty(outer * inner);
              k.reduce(op, out, a, outer, size, inner);
              const isNaNs = list(out.host).map(Number.isNaN);
              expect(isNaNs).toEqual(isNaNs.map((_, i) => i % inner === 0));
              release(out);
            }
            release(a);
          }
        }
      });

      test.each(dtypes)('argmax of %s finds the first maximum', (dtype) => {
        for (const [outer, size, inner] of shapes.filter(([, size]) => size > 0)) {
          const values = integers(outer * size * inner, 6).map((x) => x % 7);
          const [a, out] = [put(dtype, values), dirty(outer * inner, 'int32')];
          k.argmax(out, a, outer, size, inner);
          const want = columns(values, outer, size, inner).map((column) =>
            column.indexOf(Math.max(...column)),
          );
          expect(list(out.host)).toEqual(want);
          release(a, out);
        }
      });

      test('argmax takes NaN as the largest, and the first of several', () => {
        const rows = [
          [1, NaN, 3],
          [NaN, 9, NaN],
          [-Infinity, -Infinity, -Infinity],
          [Infinity, 1, NaN],
        ];
        const [a, out] = [floats(rows.flat()), dirty(4, 'int32')];
        k.argmax(out, a, 4, 3, 1);
        expect(list(out.host)).toEqual([1, 0, 0, 2]);
        release(a, out);
      });
    });

    describe('matmul', () => {
      const check = (m: number, n: number, kk: number): void => {
        const left = noise(m * kk, 10);
        const right = noise(kk * n, 11);
        const start = noise(m * n, 12);
        for (const [transA, transB, accumulate] of flags) {
          const a = floats(transA ? transposed(left, m, kk) : left);
          const b = floats(transB ? transposed(right, kk, n) : right);
          const out = floats(accumulate ? start : Array(m * n).fill(NaN));
          k.matmul(out, a, b, m, n, kk, transA, transB, accumulate);
          const want = product64(left, right, m, n, kk);
          expectClose(
            out.host,
            want.map((x, i) => x + (accumulate ? start[i]! : 0)),
            1e-6 * Math.max(4, kk),
          );
          release(a, b, out);
        }
      };

      test('all transposes, with and without accumulate, all small odd sizes', () => {
        for (const m of [0, 1, 3, 17, 33]) {
          for (const n of [0, 1, 3, 17, 33]) for (const kk of [0, 1, 3, 17, 65]) check(m, n, kk);
        }
      });

      test.each([
        [65, 65, 65],
        [200, 200, 200],
        [200, 1, 65],
        [1, 200, 65],
        [1, 1, 1000],
        [6, 16, 300],
        [7, 129, 5],
        [129, 7, 257],
        [32, 10, 512],
        [10, 512, 32],
        [300, 20, 3],
      ])('%i × %i × %i in all transposes', (m, n, kk) => {
        check(m, n, kk);
      });

      test('NaN and infinity in a row reach exactly that row', () => {
        const [m, n, kk] = [9, 20, 33];
        const left = noise(m * kk);
        left[4 * kk + 7] = NaN;
        left[6 * kk + 1] = Infinity;
        const [a, b, out] = [floats(left), floats(noise(kk * n, 2).map(Math.abs)), dirty(m * n)];
        k.matmul(out, a, b, m, n, kk, false, false, false);
        for (let i = 0; i < m * n; i++) {
          const row = Math.floor(i / n);
          expect(Number.isNaN(out.host[i])).toBe(row === 4);
          expect(Number.isFinite(out.host[i])).toBe(row !== 4 && row !== 6);
        }
        release(a, b, out);
      });
    });

    describe('softmax and losses', () => {
      const shapes: [rows: number, cols: number][] = [
        [0, 5],
        [1, 1],
        [3, 2],
        [32, 10],
        [5, 33],
        [7, 1000],
      ];

      test('logSoftmax and its gradient', () => {
        for (const [rows, cols] of shapes) {
          const values = noise(rows * cols).map((x) => x * 20);
          const grads = noise(rows * cols, 3);
          const [a, out, grad, gradIn] = [
            floats(values),
            dirty(rows * cols),
            floats(grads),
            dirty(rows * cols),
          ];
          k.logSoftmax(out, a, rows, cols);
          const want = rowsOf(values.map(Math.fround), cols).flatMap(logSoftmax64);
          expectClose(out.host, want);
          k.logSoftmaxGrad(gradIn, grad, out, rows, cols);
          const wantGrad = rowsOf(grads, cols).flatMap((row, r) => {
            const sum = row.reduce((x, y) => x + y, 0);
            return row.map((g, c) => g - Math.exp(want[r * cols + c]!) * sum);
          });
          expectClose(gradIn.host, wantGrad, 1e-5);
          release(a, out, grad, gradIn);
        }
      });

      test('logSoftmax stays finite for large inputs, takes −∞ as impossible and keeps NaN in its row', () => {
        const rows = [
          [1000, 1001, 999],
          [-3e38, 0, 0],
          [-Infinity, 2, 2],
          [NaN, 1, 2],
          [1, 2, 3],
        ];
        const [a, out] = [floats(rows.flat()), dirty(15)];
        k.logSoftmax(out, a, 5, 3);
        const want = rows.map((row) => (row.includes(NaN) ? [NaN, NaN, NaN] : logSoftmax64(row)));
        expectClose(out.host, want.flat());
        release(a, out);
      });

      test.each(['int32', 'int64'] as DType[])('nll and its gradient with %s labels', (dtype) => {
        for (const [rows, cols] of shapes) {
          const logProbs = noise(rows * cols);
          const labels = Array.from({ length: rows }, (_, r) => (r * 7 + cols - 1) % cols);
          const gradLosses = noise(rows, 5);
          const [a, wanted, losses] = [floats(logProbs), put(dtype, labels), dirty(rows)];
          const [grad, gradIn] = [floats(gradLosses), dirty(rows * cols)];
          k.nll(losses, a, wanted, rows, cols);
          expectClose(
            losses.host,
            labels.map((label, r) => -logProbs[r * cols + label]!),
          );
          k.nllGrad(gradIn, grad, wanted, rows, cols);
          expectClose(
            gradIn.host,
            logProbs.map((_, i) =>
              i % cols === labels[Math.floor(i / cols)] ? -gradLosses[Math.floor(i / cols)]! : 0,
            ),
          );
          release(a, wanted, losses, grad, gradIn);
        }
      });
    });

    describe('sgd', () => {
      const base = { lr: 0.1, momentum: 0, dampening: 0, weightDecay: 0, nesterov: false };
      test.each([
        ['plain', base],
        ['weight decay', { ...base, weightDecay: 0.01 }],
        ['momentum', { ...base, momentum: 0.9 }],
        ['momentum, dampening, weight decay', { ...base, momentum: 0.8, dampening: 0.3, weightDecay: 0.05 }],
        ['nesterov', { ...base, momentum: 0.9, nesterov: true, weightDecay: 0.01 }],
      ])('%s: three steps as torch.optim.SGD takes them', (_, options) => {
        for (const count of [0, 1, 7, 33, 1000]) {
          const start = noise(count);
          const param = floats(start);
          const velocity = options.momentum === 0 ? null : dirty(count);
          const want = start.map((value) => ({ value, speed: 0 }));
          for (let step = 0; step < 3; step++) {
            const grads = noise(count, 20 + step);
            const grad = floats(grads);
            k.sgd(param, grad, velocity, { ...options, first: step === 0 });
            for (const [i, cell] of want.entries()) sgd64(cell, grads[i]!, options, step === 0);
            release(grad);
          }
          expectClose(
            param.host,
            want.map((cell) => cell.value),
          );
          if (velocity) {
            expectClose(
              velocity.host,
              want.map((cell) => cell.speed),
            );
          }
          release(param, ...(velocity ? [velocity] : []));
        }
      });
    });
  });
}
