// Contract of attention and its gradients.
import { describe, expect, test } from 'vitest';
import type { AttributesFor } from '../../../src/backends/kernels.ts';
import type { Strided } from '../../../src/backends/operands.ts';
import type { DType } from '../../../src/core/dtype.ts';
import { expectClose, noise } from '../kernels-oracle.ts';
import { wordAt } from './random.ts';
import { valuesOf, type Workbench, walked } from './workbench.ts';

type AttentionSizes = AttributesFor<'attention'>;
/** Sizes of a case, and its mask. `blind`: the mask hides all keys from every third query. */
type Given = Partial<AttentionSizes> & { readonly mask?: 'bool' | 'float'; readonly blind?: boolean };

const defaults: AttentionSizes = {
  ...{ batch: 2, heads: 3, queries: 5, keys: 7, width: 4, valueWidth: 4 },
  ...{ scale: 0.5, causal: false, dropout: 0, stream: { seed: 9, offset: 11 } },
};

const cases: [name: string, given: Given][] = [
  ['few', {}],
  ['one of everything', { batch: 1, heads: 1, queries: 1, keys: 1, width: 1, valueWidth: 1 }],
  ['odd widths, values wider', { width: 5, valueWidth: 19, queries: 33, keys: 17 }],
  ['causal, more queries than keys', { causal: true, queries: 40, keys: 9 }],
  ['causal, more keys than queries', { causal: true, queries: 9, keys: 40 }],
  ['causal, several blocks', { batch: 1, heads: 2, causal: true, queries: 150, keys: 150, width: 8 }],
  ['several blocks, head of 64', { batch: 1, heads: 1, queries: 67, keys: 270, width: 64, valueWidth: 33 }],
  ['a bool mask with queries that see nothing', { mask: 'bool', blind: true, queries: 35, keys: 131 }],
  ['a float mask', { mask: 'float', queries: 6, keys: 20 }],
  ['a bool mask and causal', { mask: 'bool', causal: true, queries: 20, keys: 20 }],
  ['dropout', { dropout: 0.3, queries: 19, keys: 133 }],
  ['dropout, causal', { dropout: 0.5, causal: true, queries: 34, keys: 34, heads: 1 }],
  ['no keys', { keys: 0 }],
  ['no queries', { queries: 0 }],
  ['values of width 0', { valueWidth: 0, queries: 33 }],
  ['no heads', { heads: 0 }],
];

/**
 * Computes attention in plain loops over whole matrices. Returns the output, the logarithm of each query's sum of
 * exp(score) (∞ where a query sees no key), and the gradients of q, k and v for the gradient `g` of the output.
 */
function oracle(
  sizes: AttentionSizes,
  q: number[],
  k: number[],
  v: number[],
  g: number[],
  mask: number[] | null,
  isBool: boolean,
) {
  const { batch, heads, queries, keys, width, valueWidth, scale, causal, dropout, stream } = sizes;
  const out = g.map(() => 0);
  const lse: number[] = [];
  const [gradQ, gradK, gradV] = [q, k, v].map((values) => values.map(() => 0)) as [
    number[],
    number[],
    number[],
  ];
  for (let bh = 0; bh < batch * heads; bh++) {
    for (let i = 0; i < queries; i++) {
      const row = bh * queries + i;
      const scores = Array.from({ length: keys }, (_, j) => {
        let dot = 0;
        for (let d = 0; d < width; d++) dot += q[row * width + d]! * k[(bh * keys + j) * width + d]!;
        const value = mask?.[i * keys + j] ?? 0;
        const isHidden = (causal && j > i) || (mask !== null && isBool && value === 0);
        return isHidden ? -Infinity : dot * scale + (isBool ? 0 : value);
      });
      const total = scores.reduce((sum, s) => sum + Math.exp(s), 0);
      lse.push(total === 0 ? Infinity : Math.log(total));
      const probs = scores.map((s) => (total === 0 ? 0 : Math.exp(s) / total));
      const factors = probs.map((_, j) =>
        dropout > 0 && wordAt(stream, row * keys + j) < Math.floor(dropout * 2 ** 32) ? 0 : 1 / (1 - dropout),
      );
      const gradP = probs.map((p, j) => {
        let sum = 0;
        for (let d = 0; d < valueWidth; d++) {
          const [at, from] = [row * valueWidth + d, (bh * keys + j) * valueWidth + d];
          out[at]! += p * factors[j]! * v[from]!;
          gradV[from]! += p * factors[j]! * g[at]!;
          sum += g[at]! * v[from]! * factors[j]!;
        }
        return sum;
      });
      const mean = gradP.reduce((sum, x, j) => sum + x * probs[j]!, 0);
      for (const [j, p] of probs.entries()) {
        const slope = p * (gradP[j]! - mean) * scale;
        for (let d = 0; d < width; d++) {
          gradQ[row * width + d]! += slope * k[(bh * keys + j) * width + d]!;
          gradK[(bh * keys + j) * width + d]! += slope * q[row * width + d]!;
        }
      }
    }
  }
  return { out, lse, gradQ, gradK, gradV };
}

/** An operand of [batch, heads, rows, width] values, which lie in memory as [batch, rows, heads, width + 3]. */
class Laid {
  readonly strided: Strided;
  readonly #places: number[] = [];

  constructor(
    bench: Workbench,
    dtype: DType,
    sizes: AttentionSizes,
    rows: number,
    width: number,
    values?: readonly number[],
  ) {
    const { batch, heads } = sizes;
    const [row, head] = [heads * (width + 3), width + 3];
    for (let b = 0; b < batch; b++)
      for (let h = 0; h < heads; h++)
        for (let i = 0; i < rows; i++)
          for (let d = 0; d < width; d++) this.#places.push(1 + b * rows * row + i * row + h * head + d);
    const memory = Array<number>(1 + batch * rows * row).fill(99);
    for (const [i, at] of this.#places.entries()) if (values) memory[at] = values[i]!;
    this.strided = walked(bench.put(dtype, memory), [rows * row, head, row, 1], 1);
  }

  get values(): number[] {
    const all = valuesOf(this.strided);
    return this.#places.map((at) => all[at]!);
  }

  /** The elements of the memory that belong to no value. Kernels must not change them. */
  get rest(): number[] {
    const own = new Set(this.#places);
    return valuesOf(this.strided).filter((_, at) => !own.has(at));
  }
}

export function attentionContract(bench: Workbench): void {
  describe.each(['float32', 'float64'] as DType[])('attention of %s and its gradients', (dtype) => {
    test.each(cases)('%s', (_, { mask: kind, blind, ...given }) => {
      const sizes = { ...defaults, ...given };
      const { batch, heads, queries, keys, width, valueWidth } = sizes;
      const count = (rows: number, cols: number): number => batch * heads * rows * cols;
      const [q, k] = [noise(count(queries, width)), noise(count(keys, width), 2)];
      const [v, g] = [noise(count(keys, valueWidth), 3), noise(count(queries, valueWidth), 4)];
      const isBool = kind === 'bool';
      const plane = kind
        ? noise(queries * keys, 5).map((x, at) =>
            isBool ? Number(x > 0 && !(blind && Math.floor(at / keys) % 3 === 1)) : x,
          )
        : null;
      const want = oracle(sizes, q, k, v, g, plane, isBool);

      const lay = (rows: number, cols: number, values?: number[]): Laid =>
        new Laid(bench, dtype, sizes, rows, cols, values);
      const [Q, K, V, G] = [
        lay(queries, width, q),
        lay(keys, width, k),
        lay(keys, valueWidth, v),
        lay(queries, valueWidth, g),
      ];
      const out = lay(queries, valueWidth);
      const lse = bench.dirty(count(queries, 1), dtype);
      const mask = plane && walked(bench.put(isBool ? 'bool' : dtype, plane), [0, 0, keys, 1]);
      const operands = { out: out.strided, lse, q: Q.strided, k: K.strided, v: V.strided, mask };
      bench.kernels.attention(operands, sizes);
      const tolerance = dtype === 'float32' ? 1e-5 : 1e-12;
      expectClose(out.values, want.out, tolerance);
      expectClose(valuesOf(lse), want.lse, tolerance);

      const [gradQ, gradK, gradV] = [lay(queries, width), lay(keys, width), lay(keys, valueWidth)];
      bench.kernels.attentionGrad(
        { ...operands, gradOut: G.strided, gradQ: gradQ.strided, gradK: gradK.strided, gradV: gradV.strided },
        sizes,
      );
      expectClose(gradQ.values, want.gradQ, tolerance);
      expectClose(gradK.values, want.gradK, tolerance);
      expectClose(gradV.values, want.gradV, tolerance);
      for (const laid of [out, gradQ, gradK, gradV]) expect(laid.rest.every((x) => x === 99)).toBe(true);
    });

    test('scores far from 0 neither overflow nor vanish, and NaN stays with its query', () => {
      const sizes = {
        ...defaults,
        batch: 1,
        heads: 1,
        queries: 3,
        keys: 3,
        width: 1,
        valueWidth: 1,
        scale: 1,
      };
      const rows = (values: number[]): Strided => walked(bench.put(dtype, values), [3, 3, 1, 1]);
      const out = rows([99, 99, 99]);
      const [q, k, v] = [rows([1000, -1000, NaN]), rows([1, 0.5, -1]), rows([1, 2, 3])];
      bench.kernels.attention({ out, lse: bench.dirty(3, dtype), q, k, v, mask: null }, sizes);
      expectClose(valuesOf(out), [1, 3, NaN]);
    });
  });
}
