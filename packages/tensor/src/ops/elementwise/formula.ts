// Elementwise functions that are several kernels, or one of two operands, with one entry of the graph for all of them.
import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import type { MapOp } from '../../backends/declarations/names.ts';
import type { Input, Strided } from '../../backends/operands.ts';
import { noDerivative } from '../../checks/op-errors.ts';
import { type DType, isFloat, isHalf } from '../../core/dtype.ts';
import type { Shape } from '../../core/shape.ts';
import { empty, type Operand, type Tensor } from '../../core/tensor.ts';
import { Calculation, contribute, shareReduced } from '../gradient.ts';
import { jointDevice } from '../joint-device.ts';
import { bindOperand, shapeOf, stretched } from './binary.ts';

/** Writes a result from the inputs, which are broadcast to its shape. */
export type Steps = (k: Calculation, out: Strided, ...inputs: readonly Input[]) => void;

/** Values that the gradients of a formula read, besides the gradient of the output. */
export interface Saved {
  readonly inputs: readonly Input[];
  readonly out: Strided;
}

/**
 * Writes the gradient of one input. 'same': it is the gradient of the output. 'none': there is none. 'refused':
 * backward throws, because PyTorch has no gradient.
 */
export type Slope =
  | 'same'
  | 'none'
  | 'refused'
  | ((k: Calculation, into: Strided, grad: Strided, saved: Saved) => void);

export interface Formula {
  readonly name: string;
  readonly steps: Steps;
  /** The gradient of each input. */
  readonly slopes: readonly Slope[];
  /** Whether a gradient reads the output. Default false. */
  readonly readsOutput?: boolean;
}

/** Returns steps that are one kernel. */
export const kernel =
  (op: MapOp): Steps =>
  (k, out, a, b, c) =>
    k.map(op, out, a!, b, c);

const isTensor = (operand: Operand): operand is Tensor => typeof operand !== 'number';

/** Returns the dtype of a function of floats: float32 for integers and bool. */
export const floatOf = (dtype: DType): DType => (isFloat(dtype) ? dtype : 'float32');

/** Returns the dtype to compute one of `dtype` in: float32 for 16 bits, so that only results are rounded to these. */
const computingIn = (dtype: DType): DType => (isHalf(dtype) ? 'float32' : dtype);

/** Computes a formula. The operands can be broadcast to `shape`, and are read as `dtype`, that of the result. */
export function evaluate(
  formula: Formula,
  dtype: DType,
  shape: Shape,
  operands: readonly Operand[],
  computed = computingIn(dtype),
): Tensor {
  const [first, second, third] = operands;
  const out = empty(dtype, shape, jointDevice(formula.name, first!, second, third));
  const inputs = operands.map((operand) => stretched(operand, shape));
  const k = new Calculation(computed, shape, out.device);
  formula.steps(k, out.strided, ...inputs);
  k.done();
  const [a, b, c] = operands.map((operand) => (isTensor(operand) ? operand : null));
  return isRecording(a ?? out, b, c) ? recorded(formula, operands, inputs, computed, out) : out;
}

// A separate function, so that the variables which its closure captures are allocated only when it runs.
function recorded(
  { name, slopes, readsOutput }: Formula,
  operands: readonly Operand[],
  inputs: readonly Input[],
  computed: DType,
  out: Tensor,
): Tensor {
  const { shape } = out;
  const hasGradient = operands.map(
    (operand, i) => slopes[i] !== 'none' && isTensor(operand) && operand.target !== null,
  );
  if (!hasGradient.includes(true)) return out;
  const targets = operands.map((operand, i) => (hasGradient[i] && isTensor(operand) ? operand.target : null));
  const shapes = operands.map(shapeOf);
  // A number replaces values that no gradient reads, so that the closure does not hold memory that is not saved.
  const isRead = slopes.some((slope, i) => hasGradient[i] && typeof slope === 'function');
  const storages = isRead ? operands.filter(isTensor).map((operand) => operand.storage) : [];
  if (isRead && readsOutput) storages.push(out.storage);
  const saved: Saved = { inputs: isRead ? inputs : [], out: out.strided };
  return record(name, out, targets, storages, (grad, graph) => {
    for (const [i, target] of targets.entries()) {
      const slope = slopes[i]!;
      if (target === null || slope === 'none') continue;
      if (slope === 'refused') throw noDerivative(name);
      if (slope === 'same') {
        if (graph) graphOf(graph).send(target, graphOf(graph).grad, shapes[i]!);
        else shareReduced(target, grad, shape, shapes[i]!);
        continue;
      }
      const k = new Calculation(computed, shape, grad.memory.device, graph);
      if (k.graph) {
        k.graph.bind(grad.dense, k.graph.grad);
        for (const [j, input] of saved.inputs.entries())
          bindOperand(k.graph, input, shape, shapes[j]!, targets[j] ?? null);
        if (readsOutput) k.graph.bind(saved.out, k.graph.result(saved.out, shape));
      }
      contribute(target, k, shapes[i]!, (into) => slope(k, into, grad.dense, saved));
    }
  });
}
