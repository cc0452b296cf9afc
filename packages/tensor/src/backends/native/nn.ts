// The native kernels of neural networks. Those with more than four operands write all operands, strides and
// sizes to the scratch array; native/node/tensor/tensor_nn_kernels.cc reads them there.
import {
  type AttentionOperands,
  type AttentionSizes,
  type Kernels,
  type RandomKind,
  randomKinds,
} from '../kernels.ts';
import type { Strided } from '../operands.ts';
import type { NativeAddon } from './addon.ts';

type NnKernels = Pick<Kernels, 'norm' | 'normGrad' | 'attention' | 'attentionGrad' | 'random' | 'dropout'>;

const kindCodes = Object.fromEntries(randomKinds.map((kind, i) => [kind, i])) as Record<RandomKind, number>;
const stridesAt = 20;
const sizesAt = 60;

export function nnKernels(addon: NativeAddon): NnKernels {
  const { scratch } = addon;
  const setOperand = (i: number, operand: Strided | null): void => {
    scratch[2 * i] = operand === null ? 0 : operand.memory.handle;
    scratch[2 * i + 1] = operand === null ? 0 : operand.offset;
  };
  /** An operand with four strides. */
  const setRows = (i: number, operand: Strided | null): void => {
    setOperand(i, operand);
    const strides = operand?.strides;
    if (strides) for (let d = 0; d < 4; d++) scratch[stridesAt + 4 * i + d] = strides[d]!;
  };
  const placeAttention = (
    { out, lse, q, k, v, mask }: AttentionOperands,
    { batch, heads, queries, keys, width, valueWidth, scale, causal, dropout, stream }: AttentionSizes,
  ): void => {
    setRows(0, out);
    setOperand(1, lse);
    setRows(2, q);
    setRows(3, k);
    setRows(4, v);
    setRows(5, mask);
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
      setOperand(0, out);
      setOperand(1, rstd);
      setOperand(2, a);
      setOperand(3, mean);
      setOperand(4, plus?.addend ?? null);
      setOperand(5, plus?.sum ?? null);
      setOperand(6, gamma);
      setOperand(7, beta);
      addon.norm(rows, cols, eps);
    },
    normGrad: (gradIn, gradGamma, gradBeta, gradOut, a, mean, rstd, gamma, rows, cols, accumulate) => {
      setOperand(0, gradOut);
      setOperand(1, rstd);
      setOperand(2, a);
      setOperand(3, mean);
      setOperand(4, gamma);
      setOperand(5, gradIn);
      setOperand(6, gradGamma);
      setOperand(7, gradBeta);
      addon.normGrad(rows, cols, accumulate ? 1 : 0);
    },
    attention: (operands, sizes) => {
      placeAttention(operands, sizes);
      addon.attention();
    },
    attentionGrad: ({ gradOut, gradQ, gradK, gradV }, operands, sizes) => {
      placeAttention(operands, sizes);
      setRows(6, gradOut);
      setRows(7, gradQ);
      setRows(8, gradK);
      setRows(9, gradV);
      addon.attentionGrad();
    },
    random: (kind, out, count, { seed, offset, live = -1 }, low, high) => {
      setOperand(0, out);
      addon.random(kindCodes[kind], count, seed, offset, low, high, live);
    },
    dropout: (out, a, count, p, { seed, offset, live = -1 }) => {
      setOperand(0, out);
      setOperand(1, a);
      addon.dropout(count, p, seed, offset, live);
    },
  };
}
