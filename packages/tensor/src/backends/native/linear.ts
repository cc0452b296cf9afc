// The fused linear layer: on the CPU in a kernel of its own; on devices by the vendor's library, where that has the
// activation, else of parts.
import type { Kernels } from '../kernels.ts';
import { type Activation, activations, type LayerKernels } from '../layer-kernels.ts';
import type { Strided } from '../operands.ts';
import type { NativeAddon } from './addon.ts';

type LinearKernels = Pick<LayerKernels, 'linear' | 'linearGrad'>;

const codes = Object.fromEntries(activations.map((name, i) => [name, i]));
const asRow = ({ memory, offset }: Strided): Strided => ({ memory, offset, strides: [0, 1] });

function setOperand(scratch: Float64Array, i: number, operand: Strided | null): void {
  scratch[2 * i] = operand === null ? 0 : operand.memory.handle;
  scratch[2 * i + 1] = operand === null ? 0 : operand.offset;
}

/** A call of the addon that takes a layer. */
const calling =
  <Result>(
    scratch: Float64Array,
    call: (rows: number, outs: number, ins: number, activation: number) => Result,
  ) =>
  (
    ...[out, before, x, w, bias, activation, { rows, outs, ins }]: Parameters<LinearKernels['linear']>
  ): Result => {
    setOperand(scratch, 0, out);
    setOperand(scratch, 1, x);
    setOperand(scratch, 2, w);
    setOperand(scratch, 3, bias);
    setOperand(scratch, 4, before);
    return call(rows, outs, ins, codes[activation]!);
  };

export function linearKernels({ scratch, linear, linearGrad }: NativeAddon): LinearKernels {
  return {
    linear: calling(scratch, linear),
    linearGrad: (gradBefore, gradBias, grad, saved, activation, rows, outs) => {
      setOperand(scratch, 0, gradBefore);
      setOperand(scratch, 1, grad);
      setOperand(scratch, 2, saved);
      setOperand(scratch, 3, gradBias);
      linearGrad(rows, outs, codes[activation]!);
    },
  };
}

/** The same on a device. */
export function deviceLinear(
  { scratch, cudaLinear }: NativeAddon,
  { matmul, map, reduce, copy }: Kernels,
): LinearKernels {
  const byLibrary = calling(scratch, cudaLinear);
  const apply = (activation: Activation, out: Strided, sums: Strided, count: number): void => {
    if (activation !== 'none') map(activation, out.memory.dtype, [count], out, sums);
    else if (sums !== out) copy([count], out, sums);
  };
  return {
    linear: (out, before, x, w, bias, activation, sizes) => {
      if (byLibrary(out, before, x, w, bias, activation, sizes)) return;
      const { rows, outs, ins } = sizes;
      const sums = before ?? out;
      // The library may have the bias without this activation.
      const isAdded = activation !== 'none' && byLibrary(sums, null, x, w, bias, 'none', sizes);
      if (isAdded) return apply(activation, out, sums, rows * outs);
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
      if (bias) map('add', out.memory.dtype, [rows, outs], sums, sums, asRow(bias));
      apply(activation, out, sums, rows * outs);
    },
    linearGrad: (gradBefore, gradBias, grad, saved, activation, rows, outs) => {
      map(`${activation}Grad`, gradBefore.memory.dtype, [rows * outs], gradBefore, grad, saved);
      if (gradBias) reduce('sum', [rows, outs], asRow(gradBias), gradBefore);
    },
  };
}
