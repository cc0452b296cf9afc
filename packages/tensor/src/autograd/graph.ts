// One step of a backward whose gradients are tensors with a graph, so that they can be differentiated again. In this
// case the gradient function of an operation receives a GradGraph, computes with tensors, and sends tensors to the
// inputs.
import type { MapOp } from '../backends/declarations/names.ts';
import type { Input, Strided } from '../backends/operands.ts';
import type { DType } from '../core/dtype.ts';
import type { Storage } from '../core/memory/storage.ts';
import { type Shape, sameShape } from '../core/shape.ts';
import { created, type Operand, type Tensor } from '../core/tensor.ts';
import { type Backward, type Node, record } from './node.ts';
import type { GradTarget } from './target.ts';

/** Functions that the steps of one backward share. */
export interface GraphTools {
  /** Does the same as the elementwise kernel, with tensors and a gradient. */
  readonly map: (op: MapOp, operands: readonly Operand[], dtype: DType) => Operand;
  /** Returns gradients that have a graph, null for inputs that the output does not depend on. */
  readonly differentiate: (output: Tensor, gradient: Tensor, inputs: readonly Tensor[]) => (Tensor | null)[];
  readonly send: (target: GradTarget, gradient: Tensor) => void;
}

/** A value that an operation saved, with the shape of its tensor and the target of its gradient. */
export interface SavedValue {
  readonly strided: Strided;
  readonly shape: Shape;
  readonly target: GradTarget | null;
}

/** Returns a tensor over saved memory that sends its gradient to `target`. */
export function revived(storage: Storage, { strided, shape, target }: SavedValue): Tensor {
  const tensor = created(storage.retain(), shape, strided);
  if (target === null) return tensor;
  return record('saved', tensor, [target], [], passedOn(target));
}

/** Returns the gradient of an operation that passes it on as it is. */
export function passedOn(target: GradTarget): Backward {
  return (grad, graph) => {
    if (graph) graphOf(graph).send(target, graphOf(graph).grad);
    else target.share(grad);
  };
}

/** Sums a gradient over the dimensions along which an input of `shape` was broadcast. */
export function summedTo(gradient: Tensor, shape: Shape): Tensor {
  if (sameShape(gradient.shape, shape)) return gradient;
  const more = gradient.rank - shape.length;
  const dims = [...gradient.shape.keys()].filter(
    (d) => d < more || (shape[d - more] === 1 && gradient.shape[d] !== 1),
  );
  return (dims.length > 0 ? gradient.sum(dims, true) : gradient).reshape(shape);
}

export class GradGraph {
  /** The gradient of the operation's result. */
  readonly grad: Tensor;
  readonly #node: Node;
  readonly #tools: GraphTools;
  readonly #values = new Map<Strided, Operand>();

  constructor(node: Node, grad: Tensor, tools: GraphTools) {
    this.#node = node;
    this.grad = grad;
    this.#tools = tools;
  }

  /** Returns a saved value as a tensor. */
  saved(strided: Strided, shape: Shape, target: GradTarget | null): Tensor {
    return revived(this.#node.savedStorage(strided.memory), { strided, shape, target });
  }

  /** Returns the saved result of the operation. */
  result(strided: Strided, shape: Shape): Tensor {
    return this.saved(strided, shape, this.#node);
  }

  /** Sends a gradient to an input of `shape`, summed over the broadcast dimensions. Does nothing without a target. */
  send(target: GradTarget | null, gradient: Tensor, shape: Shape = gradient.shape): void {
    if (target !== null) this.#tools.send(target, summedTo(gradient, shape).to(target.dtype));
  }

  /**
   * Sends the gradients of an operation that one kernel computes: the gradients of `compose`, which computes the same
   * from the saved inputs by operations that have second gradients.
   */
  through(inputs: readonly SavedValue[], compose: (...inputs: Tensor[]) => Tensor): void {
    const tensors = inputs.map(({ strided, shape, target }) => this.saved(strided, shape, target));
    const output = compose(...tensors);
    const wanted = tensors.filter((tensor) => tensor.requiresGrad);
    const gradients = this.#tools.differentiate(output, this.grad.to(output.dtype), wanted);
    for (const [i, tensor] of tensors.entries()) {
      const gradient = gradients[wanted.indexOf(tensor)];
      if (gradient) this.send(inputs[i]!.target, gradient);
    }
  }

  /** Lets map() read `tensor` where a rule names the operand `strided`. */
  bind(strided: Input, tensor: Tensor): void {
    if (typeof strided !== 'number') this.#values.set(strided, tensor);
  }

  /** Computes an elementwise kernel of a rule. Later steps refer to the result by `out`. */
  map(op: MapOp, dtype: DType, out: Strided, operands: readonly Input[]): void {
    const values = operands.map((operand) => this.valueOf(operand));
    this.#values.set(out, this.#tools.map(op, values, dtype));
  }

  /** Returns the value of an operand of a rule. */
  valueOf(operand: Input): Operand {
    if (typeof operand === 'number') return operand;
    const value = this.#values.get(operand);
    if (value !== undefined) return value;
    throw new Error(`${this.#node.name}: its rule reads an operand that is not bound`);
  }
}

/** Returns the graph that a gradient got, which node.ts, from which core/tensor.ts is made, cannot name. */
export const graphOf = (graph: object): GradGraph => graph as GradGraph;
