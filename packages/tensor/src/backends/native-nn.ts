// The native kernels of neural networks. Those with more than four operands write all operands, strides and sizes to the
// scratch array; native/node/tensor_nn_kernels.cc reads them there.
import {
  type AttentionOperands,
  type AttentionSizes,
  type Kernels,
  type RandomKind,
  randomKinds,
  type Strided,
} from '../kernels.ts';
import type { NativeAddon } from './native-addon.ts';

type NnKernels = Pick<Kernels, 'norm' | 'normGrad' | 'attention' | 'attentionGrad' | 'random' | 'dropout'>;

const kindCodes = Object.fromEntries(randomKinds.map((kind, i) => [kind, i])) as Record<RandomKind, number>;
const stridesAt = 20;
const sizesAt = 60;

export function nnKernels(addon: NativeAddon): NnKernels {
  const { scratch } = addon;
  const place = (i: number, operand: Strided | null): void => {
    scratch[2 * i] = operand === null ? 0 : operand.memory.handle;
    scratch[2 * i + 1] = operand === null ? 0 : operand.offset;
  };
  /** An operand with four strides. */
  const placeRows = (i: number, operand: Strided | null): void => {
    place(i, operand);
    const strides = operand?.strides;
    if (strides) for (let d = 0; d < 4; d++) scratch[stridesAt + 4 * i + d] = strides[d]!;
  };
  const placeAttention = (
    { out, lse, q, k, v, mask }: AttentionOperands,
    { batch, heads, queries, keys, width, valueWidth, scale, causal, dropout, stream }: AttentionSizes,
  ): void => {
    placeRows(0, out);
    place(1, lse);
    placeRows(2, q);
    placeRows(3, k);
    placeRows(4, v);
    placeRows(5, mask);
    scratch[sizesAt] = batch;
    scratch[sizesAt + 1] = heads;
    scratch[sizesAt + 2] = queries;
    scratch[sizesAt + 3] = keys;
    scratch[sizesAt + 4] = width;
    scratch[sizesAt + 5] = valueWidth;
    scratch[sizesAt + 6] = scale;
    scratch[sizesAt + 7] = causal ? 1 : 0;
    scratch[sizesAt + 8] = dropout;
    scratch[sizesAt + 9] = stream.seed;
    scratch[sizesAt + 10] = stream.offset;
    scratch[sizesAt + 11] = stream.live ?? -1;
  };
  return {
    norm: (out, mean, rstd, a, plus, gamma, beta, { rows, cols, eps }) => {
      place(0, out);
      place(1, rstd);
      place(2, a);
      place(3, mean);
      place(4, plus?.addend ?? null);
      place(5, plus?.sum ?? null);
      place(6, gamma);
      place(7, beta);
      addon.norm(rows, cols, eps);
    },
    normGrad: (gradIn, gradGamma, gradBeta, gradOut, a, mean, rstd, gamma, rows, cols, accumulate) => {
      place(0, gradOut);
      place(1, rstd);
      place(2, a);
      place(3, mean);
      place(4, gamma);
      place(5, gradIn);
      place(6, gradGamma);
      place(7, gradBeta);
      addon.normGrad(rows, cols, accumulate ? 1 : 0);
    },
    attention: (operands, sizes) => {
      placeAttention(operands, sizes);
      addon.attention();
    },
    attentionGrad: ({ gradOut, gradQ, gradK, gradV }, operands, sizes) => {
      placeAttention(operands, sizes);
      placeRows(6, gradOut);
      placeRows(7, gradQ);
      placeRows(8, gradK);
      placeRows(9, gradV);
      addon.attentionGrad();
    },
    random: (kind, out, count, { seed, offset, live = -1 }, low, high) => {
      place(0, out);
      addon.random(kindCodes[kind], count, seed, offset, low, high, live);
    },
    dropout: (out, a, count, p, { seed, offset, live = -1 }) => {
      place(0, out);
      place(1, a);
      addon.dropout(count, p, seed, offset, live);
    },
  };
}
