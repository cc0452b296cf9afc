// The fused linear layer, one element after the other.
import type { Activation, MapOp } from '../declarations/names.ts';
import type { DenseKernels } from '../kernels.ts';
import type { Strided } from '../operands.ts';
import { floatOps } from './map.ts';

type Floats = Float32Array | Float64Array;
const floats = ({ memory, offset }: Strided, count: number): Floats =>
  (memory.host as Floats).subarray(offset, offset + count);

export const linear: DenseKernels['linear'] = (
  { out, before, x, w, bias },
  { rows, outs, ins, activation },
) => {
  const [to, kept, start] = [
    floats(out, rows * outs),
    before && floats(before, rows * outs),
    bias && floats(bias, outs),
  ];
  const [left, right] = [floats(x, rows * ins), floats(w, outs * ins)];
  const round = to instanceof Float32Array ? Math.fround : Number;
  for (let r = 0; r < rows; r++) {
    for (let j = 0; j < outs; j++) {
      let sum = start?.[j] ?? 0;
      for (let p = 0; p < ins; p++) sum += left[r * ins + p]! * right[j * ins + p]!;
      const value = round(sum);
      if (kept) kept[r * outs + j] = value;
      to[r * outs + j] = activation === 'none' ? value : floatOps[activation](value, 0, 0);
    }
  }
};

export const linearGrad: DenseKernels['linearGrad'] = (
  { gradBefore, gradBias, grad, saved },
  { rows, outs, activation },
) => {
  const count = rows * outs;
  const [to, from, values] = [floats(gradBefore, count), floats(grad, count), floats(saved, count)];
  const slope = floatOps[`${activation as Exclude<Activation, 'none'>}Grad` satisfies MapOp];
  const sums = new Float64Array(outs);
  for (let i = 0; i < count; i++) {
    to[i] = slope(from[i]!, values[i]!, 0);
    sums[i % outs]! += to[i]!;
  }
  if (gradBias) floats(gradBias, outs).set(sums);
};
