// Contract of map, the kernel of all elementwise operations.
import { describe, expect, test } from 'vitest';
import { floatMapOps, integerMapOps, type MapOp, mapOps } from '../../../src/backends/declarations/names.ts';
import { type DType, isFloat } from '../../../src/core/dtype.ts';
import {
  binaries,
  dtypes,
  expectClose,
  floatTypes,
  gather,
  integerPairs,
  integers,
  noise,
  product,
  sizes,
  slopes,
  special,
  stored,
  ternaries,
  tolerances,
  unaries,
} from '../kernels-oracle.ts';
import { valuesOf, type Workbench, walked } from './workbench.ts';

/** An operation in float64. Operations of fewer inputs do not read the others. */
type Expression = (a: number, b: number, c: number) => number;
const oracle: Readonly<Record<string, Expression>> = {
  ...unaries,
  ...binaries,
  ...integerPairs,
  ...slopes,
  ...ternaries,
};
const arity = (op: MapOp): number => (op in unaries ? 1 : op in ternaries ? 3 : 2);
/** Operations whose first input inputsFor() makes positive, because most results would be NaN otherwise. */
const positiveFirst = new Set<MapOp>(['log', 'log2', 'log10', 'sqrt', 'rsqrt', 'pow']);
/** Operations of a sine, a cosine or a hyperbolic tangent, whose inputs must not exceed 1. */
const atMostOne = new Set<MapOp>(['asin', 'acos', 'atanh', 'erfinv', 'log1p']);
/** Operations that divide by their second input, and those that take its logarithm. */
const divides = new Set<MapOp>(['remainder', 'fmod', 'floorDiv']);
/** Returns numbers for which input `i` of an operation is defined and well conditioned. */
function suited(op: MapOp, i: number, raw: readonly number[], isOfFloats: boolean): readonly number[] {
  if (i === 0 && positiveFirst.has(op)) return raw.map((x) => Math.abs(x) + 0.1);
  if (i === 0 && atMostOne.has(op)) return raw.map((x) => x * 0.45);
  if (i === 0 && op === 'tan') return raw.map((x) => x * 0.6);
  if (i === 0 && op === 'acosh') return raw.map((x) => Math.abs(x) + 1.5);
  if (i === 1 && op === 'xlogy') return raw.map((x) => Math.abs(x) + 0.1);
  // Quotients that are not near an integer, where a rounding error would change the result.
  if (divides.has(op) && isOfFloats) return raw.map((x) => (i === 1 ? 2 : Math.round(x * 8) + 0.25));
  if (i === 1 && divides.has(op)) return raw.map((x) => (x === 0 ? 3 : x));
  return raw;
}

/** Returns inputs as the dtype stores them, so that the oracle gets the same rounded arguments as the kernel. */
const inputsFor = (op: MapOp, dtype: DType, count: number): number[][] =>
  [2, 3, 4].map((seed, i) => {
    const raw = isFloat(dtype) ? noise(count, seed) : integers(count, seed).map((x) => x % 8);
    const values = suited(op, i, raw, isFloat(dtype));
    return stored(dtype, op === 'where' && i === 0 ? values.map((x) => Number(x > 0)) : values);
  });

/** Functions f with f(-0) = -0. */
const odd = [
  ...([
    'tanh',
    'sin',
    'tan',
    'asin',
    'atan',
    'sinh',
    'asinh',
    'atanh',
    'expm1',
    'log1p',
    'erf',
    'erfinv',
  ] as const),
  ...(['sqrt', 'floor', 'ceil', 'trunc', 'round'] as const),
];

export function elementwiseContract(bench: Workbench): void {
  describe('map', () => {
    test.each(mapOps.filter((op) => !integerMapOps.has(op)))(
      '%s of floats, of every size, also in place',
      (op) => {
        for (const count of sizes) {
          const inputs = inputsFor(op, 'float32', count);
          // Some elements are equal, for comparisons, max and min.
          for (let i = 0; i < count; i += 5) inputs[1]![i] = inputs[0]![i]!;
          const operands = inputs.slice(0, arity(op)).map((values) => bench.floats(values));
          const out = bench.dirty(count);
          const [a, b, c] = operands;
          bench.kernels.map(op, 'float32', [count], out, a!, b, c);
          expectClose(
            valuesOf(out),
            inputs[0]!.map((x, i) => oracle[op]!(x, inputs[1]![i]!, inputs[2]![i]!)),
            op in slopes ? 1e-5 : tolerances.float32,
          );
          bench.kernels.map(op, 'float32', [count], a!, a!, b, c);
          expect(valuesOf(a!)).toEqual(valuesOf(out));
        }
      },
    );

    const cases = dtypes.flatMap((dtype) =>
      mapOps
        .filter((op) => !(isFloat(dtype) ? integerMapOps : floatMapOps).has(op))
        .map((op) => [op, dtype] as const),
    );
    test.each(cases)('%s of %s, read and written with strides', (op, dtype) => {
      const count = 600;
      const inputs = inputsFor(op, dtype, 2 * count);
      // Exponents are made small and not negative, so that the results stay small.
      if (op === 'pow') inputs[1] = inputs[1]!.map((x) => Math.abs(x % 3));
      const [a, b, c] = inputs.map((values) => bench.put(dtype, values));
      const out = bench.dirty(3 * count, dtype);
      const rest = [walked(b!, [1], 7), walked(c!, [0], 3)].slice(0, arity(op) - 1);
      bench.kernels.map(op, dtype, [count], walked(out, [3], 1), walked(a!, [2]), ...rest);
      const want = Array.from({ length: count }, (_, i) =>
        oracle[op]!(inputs[0]![2 * i]!, inputs[1]![i + 7]!, inputs[2]![3]!),
      );
      const got = gather(valuesOf(out), [count], [3], 1);
      const tolerance = op in slopes ? Math.max(1e-5, tolerances[dtype]) : tolerances[dtype];
      expectClose(got, isFloat(dtype) ? want : stored(dtype, want), tolerance);
    });

    test.each(Object.keys({ ...unaries, ...binaries }) as MapOp[])(
      '%s of NaN, infinities, zeros, extremes',
      (op) => {
        // The second input is an output of sigmoid or tanh, which never exceeds 1.
        const second = op === 'sigmoidGrad' || op === 'tanhGrad' ? [NaN, 0, -0, 0.5, 1, -1] : special;
        // Leaves out finite arguments so large that a float32 cannot resolve their sine, cosine and tangent.
        const isTooLarge = (x: number) => Number.isFinite(x) && Math.abs(x) > 1000;
        const first =
          op === 'sin' || op === 'cos' || op === 'tan' ? special.filter((x) => !isTooLarge(x)) : special;
        const left = first.flatMap((x) => second.map(() => Math.fround(x)));
        const right = first.flatMap(() => second.map(Math.fround));
        for (const dtype of ['float32', 'float64'] as const) {
          const [a, b, out] = [
            bench.put(dtype, left),
            bench.put(dtype, right),
            bench.dirty(left.length, dtype),
          ];
          bench.kernels.map(op, dtype, [left.length], out, a, arity(op) === 1 ? undefined : b);
          const want = left.map((x, i) => oracle[op]!(x, right[i]!, 0));
          expectClose(valuesOf(out), dtype === 'float32' ? want.map(Math.fround) : want);
        }
      },
    );

    test.each(odd)('%s keeps the sign of zero', (op) => {
      for (const dtype of ['float32', 'float64', 'bfloat16'] as const) {
        const out = bench.dirty(2, dtype);
        bench.kernels.map(op, dtype, [2], out, bench.put(dtype, [0, -0]));
        expect(valuesOf(out)).toEqual([0, -0]);
      }
    });

    const layouts: [shape: number[], a: number[], b: number[]][] = [
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
    test.each(dtypes)('broadcasts %s over any strides', (dtype) => {
      const [a, b] = [bench.put(dtype, integers(210, 4)), bench.put(dtype, integers(210, 5))];
      for (const [shape, aStrides, bStrides] of layouts) {
        const x = gather(valuesOf(a), shape, aStrides);
        const y = gather(valuesOf(b), shape, bStrides);
        const out = bench.dirty(product(shape), dtype);
        bench.kernels.map('sub', dtype, shape, out, walked(a, aStrides), walked(b, bStrides));
        const want = x.map((value, i) => value - y[i]!);
        expectClose(valuesOf(out), isFloat(dtype) ? want : stored(dtype, want), tolerances[dtype]);
      }
    });

    test('converts inputs of every dtype to the computing dtype, and results to others', () => {
      const count = 700;
      for (const compute of ['float32', 'float64', 'int64'] as const) {
        for (const left of dtypes) {
          for (const right of dtypes) {
            const values = [left, right].map((dtype, i) =>
              stored(
                dtype,
                integers(count, 4 + i).map((x) => x % 16),
              ),
            );
            const [a, b] = [bench.put(left, values[0]!), bench.put(right, values[1]!)];
            const want = values[0]!.map((x, i) => x * values[1]![i]! + 1);
            for (const to of ['float32', 'int32', 'bool'] as const) {
              const out = bench.dirty(count, to);
              bench.kernels.map('mulAdd', compute, [count], out, a, b, 1);
              expect(valuesOf(out)).toEqual(stored(to, want));
            }
          }
        }
      }
    });

    test('takes a number in any place', () => {
      for (const dtype of floatTypes) {
        const a = bench.put(dtype, [1, 2, 3]);
        const out = bench.dirty(3, dtype);
        bench.kernels.map('sub', dtype, [3], out, 0.5, a);
        expect(valuesOf(out)).toEqual([-0.5, -1.5, -2.5]);
        bench.kernels.map('where', dtype, [3], out, 1, 8, a);
        expect(valuesOf(out)).toEqual([8, 8, 8]);
        bench.kernels.map('mulAdd', dtype, [3], out, a, 2, out);
        expect(valuesOf(out)).toEqual([10, 12, 14]);
      }
    });

    test('adds a row into dense memory in place, as a bias is added', () => {
      for (const [rows, cols] of [
        [1, 1],
        [3, 17],
        [32, 33],
        [65, 10],
        [3, 1200],
      ] as const) {
        const [values, bias] = [noise(rows * cols), noise(cols, 9)];
        const [a, b] = [bench.floats(values), bench.floats(bias)];
        bench.kernels.map('add', 'float32', [rows, cols], a, a, walked(b, [0, 1]));
        expectClose(
          valuesOf(a),
          values.map((x, i) => x + bias[i % cols]!),
        );
      }
    });

    test('integer arithmetic wraps around', () => {
      const [a, b] = [bench.put('int32', [2 ** 31 - 1, 65537]), bench.put('int32', [1, 65537])];
      const out = bench.dirty(2, 'int32');
      bench.kernels.map('add', 'int32', [2], out, a, b);
      expect(valuesOf(out)).toEqual([-(2 ** 31), 131074]);
      bench.kernels.map('mul', 'int32', [2], out, a, b);
      expect(valuesOf(out)).toEqual([2 ** 31 - 1, 131073]);
      const [x, wide] = [bench.putArray('int64', BigInt64Array.of(2n ** 62n)), bench.dirty(1, 'int64')];
      bench.kernels.map('mul', 'int64', [1], wide, x, 3);
      expect(wide.memory.host[0]).toBe(BigInt.asIntN(64, 3n * 2n ** 62n));
      const small = bench.put('uint8', [200, 3]);
      bench.kernels.map('add', 'uint8', [2], small, small, 100);
      expect(valuesOf(small)).toEqual([44, 103]);
    });
  });
}
