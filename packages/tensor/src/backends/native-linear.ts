// The fused linear layer on the CPU, and on devices that have no kernel for it, the parts that it is made of.
import type { Kernels, Strided } from '../kernels.ts';
import { activations, type LayerKernels } from '../layer-kernels.ts';
import type { NativeAddon } from './native-addon.ts';

type LinearKernels = Pick<LayerKernels, 'linear' | 'linearGrad'>;

const codes = Object.fromEntries(activations.map((name, i) => [name, i]));
const asRow = ({ memory, offset }: Strided): Strided => ({ memory, offset, strides: [0, 1] });

export function linearKernels({ scratch, linear, linearGrad }: NativeAddon): LinearKernels {
  const place = (i: number, operand: Strided | null): void => {
    scratch[2 * i] = operand === null ? 0 : operand.memory.handle;
    scratch[2 * i + 1] = operand === null ? 0 : operand.offset;
  };
  return {
    linear: (out, before, x, w, bias, activation, { rows, outs, ins }) => {
      place(0, out);
      place(1, x);
      place(2, w);
      place(3, bias);
      place(4, before);
      linear(rows, outs, ins, codes[activation]!);
    },
    linearGrad: (gradBefore, gradBias, grad, saved, activation, rows, outs) => {
      place(0, gradBefore);
      place(1, grad);
      place(2, saved);
      place(3, gradBias);
      linearGrad(rows, outs, codes[activation]!);
    },
  };
}

/** The same from products, elementwise operations and sums. */
export function composedLinear({ matmul, map, reduce, copy }: Kernels): LinearKernels {
  return {
    linear: (out, before, x, w, bias, activation, { rows, outs, ins }) => {
      const sums = before ?? out;
      const { dtype } = out.memory;
      const here: Strided = { ...sums, strides: [] };
      const steps = { aStep: ins, bStep: ins, transA: false, transB: true, accumulate: false };
      if (ins === 0) copy([rows * outs], sums, 0);
      else
        matmul(
          [],
          here,
          { ...x, strides: [] },
          { ...w, strides: [] },
          { m: rows, n: outs, k: ins, ...steps },
        );
      if (bias) map('add', dtype, [rows, outs], sums, sums, asRow(bias));
      if (activation !== 'none') map(activation, dtype, [rows * outs], out, sums);
      else if (sums !== out) copy([rows * outs], out, sums);
    },
    linearGrad: (gradBefore, gradBias, grad, saved, activation, rows, outs) => {
      map(`${activation}Grad`, gradBefore.memory.dtype, [rows * outs], gradBefore, grad, saved);
      if (gradBias) reduce('sum', [rows, outs], asRow(gradBias), gradBefore);
    },
  };
}
