// One step of an LSTM and its gradient, after the product with the hidden state.
import type { DenseKernels } from '../kernels.ts';
import type { Strided } from '../operands.ts';

type Floats = Float32Array | Float64Array;

const floats = ({ memory, offset }: Strided, count: number): Floats =>
  (memory.host as Floats).subarray(offset, offset + count);
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

export const lstm: DenseKernels['lstm'] = (operands, { rows, width }) => {
  const count = rows * width;
  const gates = floats(operands.gates, 4 * count);
  const [hidden, cell] = [floats(operands.hidden, count), floats(operands.cell, count)];
  const [out, tanh] = [floats(operands.out, count), floats(operands.cellTanh, count)];
  floats(operands.hiddenBefore, count).set(hidden);
  floats(operands.cellBefore, count).set(cell);
  for (let at = 0; at < count; at++) {
    const i = at + Math.floor(at / width) * 3 * width;
    const [f, g, o] = [i + width, i + 2 * width, i + 3 * width];
    for (const gate of [i, f, o]) gates[gate] = sigmoid(gates[gate]!);
    gates[g] = Math.tanh(gates[g]!);
    cell[at] = gates[i]! * gates[g]! + gates[f]! * cell[at]!;
    tanh[at] = Math.tanh(cell[at]!);
    hidden[at] = gates[o]! * tanh[at]!;
    out[at] = hidden[at]!;
  }
};

export const lstmGrad: DenseKernels['lstmGrad'] = (operands, { rows, width }) => {
  const count = rows * width;
  const [gradGates, gates] = [floats(operands.gradGates, 4 * count), floats(operands.gates, 4 * count)];
  const [gradHidden, gradOut] = [floats(operands.gradHidden, count), floats(operands.gradOut, count)];
  const [gradCell, cellBefore] = [floats(operands.gradCell, count), floats(operands.cellBefore, count)];
  const tanh = floats(operands.cellTanh, count);
  for (let at = 0; at < count; at++) {
    const first = at + Math.floor(at / width) * 3 * width;
    const positions = [0, 1, 2, 3].map((gate) => first + gate * width);
    const [i, f, g, o] = positions.map((position) => gates[position]!) as [number, number, number, number];
    const hidden = gradHidden[at]! + gradOut[at]!;
    const total = gradCell[at]! + hidden * o * (1 - tanh[at]! ** 2);
    gradGates[positions[0]!] = total * g * i * (1 - i);
    gradGates[positions[1]!] = total * cellBefore[at]! * f * (1 - f);
    gradGates[positions[2]!] = total * i * (1 - g ** 2);
    gradGates[positions[3]!] = hidden * tanh[at]! * o * (1 - o);
    gradCell[at] = total * f;
  }
};
