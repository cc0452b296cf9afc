// Operations with a user-defined gradient.

import { kernels } from '../backends/index.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { aFunction, checkValue } from '../checks/value-checks.ts';
import { enableGrad, isGradEnabled, noGrad, scope } from '../core/context.ts';
import { allocate, type Storage } from '../core/memory/storage.ts';
import { created, Tensor } from '../core/tensor.ts';
import { checkedGradient } from '../core/tensor-grad.ts';
import { badOption, gradientCount, noResult, shown } from '../errors.ts';
import { type GradGraph, graphOf, revived, type SavedValue } from './graph.ts';
import { record } from './node.ts';

interface Saved extends SavedValue {
  readonly storage: Storage;
}

/** Carries values from forward to backward. */
export class FunctionContext {
  #saved: readonly Saved[] = [];
  /** Whether backward computes gradients that have a graph. */
  #isDifferentiable = false;

  /** Whether a gradient is needed for each input; backward may return null for the others. */
  readonly needsGrad: readonly boolean[];

  /** Internal. */
  constructor(needsGrad: readonly boolean[]) {
    this.needsGrad = needsGrad;
  }

  /** Keeps tensors, inputs or others, for backward. To be called once, in forward. */
  save(...tensors: readonly Tensor[]): void {
    this.#saved = tensors.map(({ storage, shape, strided, target }) => ({ storage, shape, strided, target }));
  }

  /** The saved tensors. Only in backward. */
  get saved(): readonly Tensor[] {
    const isConstant = !this.#isDifferentiable;
    return this.#saved.map((one) => revived(one.storage, isConstant ? { ...one, target: null } : one));
  }

  /** Runs `backward`, and records its computations on `saved`. @internal */
  differentiably<T>(backward: () => T): T {
    this.#isDifferentiable = true;
    try {
      return enableGrad(backward);
    } finally {
      this.#isDifferentiable = false;
    }
  }

  /** Returns the memory that the tape must keep. @internal */
  storages(): Storage[] {
    return this.#saved.map(({ storage }) => storage);
  }
}

/** Options of customFunction(). */
export interface FunctionOptions<Inputs extends readonly unknown[]> {
  /** Name of the operation, for error messages. */
  readonly name: string;
  /** Computes the result; nothing in it is recorded. */
  readonly forward: (context: FunctionContext, ...inputs: Inputs) => Tensor;
  /**
   * Returns the gradient of each input, given the gradient of the result; null means zero, and is for inputs that are
   * not tensors.
   */
  readonly backward: (context: FunctionContext, grad: Tensor) => readonly (Tensor | null)[] | Tensor;
}

const functionOptions = optionChecks<FunctionOptions<readonly unknown[]>>({
  name: { expected: 'a string', fits: (value) => typeof value === 'string' },
  forward: aFunction,
  backward: aFunction,
});

/** The part of an input that backward needs. @internal */
export type Input = Pick<Tensor, 'dtype' | 'shape' | 'device' | 'target'>;

/** Sends the gradients that a backward gave, or zeros for null, to the inputs that require one. @internal */
export function sendGradients(
  name: string,
  inputs: readonly (Input | null)[],
  given: readonly (Tensor | null)[],
): void {
  if (given.length !== inputs.length) throw gradientCount(name, inputs.length, given.length);
  for (const [i, input] of inputs.entries()) {
    const target = input?.target;
    if (!target) continue;
    const gradient = given[i] ?? null;
    const contribution = gradient
      ? checkedGradient(name, gradient, input)
      : allocate(target.dtype, target.count, target.device);
    if (gradient === null) kernels().copy([target.count], contribution.dense, 0);
    target.share(contribution);
    contribution.release();
  }
}

/** Returns the gradients that backward gave for `count` inputs, as a list. Throws for neither a tensor nor a list. */
function asList(
  name: string,
  count: number,
  given: readonly (Tensor | null)[] | Tensor,
): readonly (Tensor | null)[] {
  if (given instanceof Tensor) return [given];
  if (!Array.isArray(given)) throw gradientCount(name, count, shown(given));
  return given as readonly (Tensor | null)[];
}

/** Does the same as sendGradients(), with tensors that have a graph. */
function sendTensors(
  name: string,
  graph: GradGraph,
  inputs: readonly (Input | null)[],
  given: readonly (Tensor | null)[],
): void {
  if (given.length !== inputs.length) throw gradientCount(name, inputs.length, given.length);
  for (const [i, input] of inputs.entries()) {
    const gradient = given[i];
    if (!input?.target || !gradient) continue;
    checkedGradient(name, gradient, input).release();
    graph.send(input.target, gradient);
  }
}

/**
 * Makes an operation from its forward and its backward. Inputs may be tensors and other values. The result
 * shares the memory of the tensor that forward returns, which may be new, an input or any other.
 *
 * @example
 * ```ts
 * const double = customFunction({
 *   name: 'double',
 *   forward: (_, a: Tensor) => a.mul(2),
 *   backward: (_, gradient) => [gradient.mul(2)],
 * });
 * double(x);
 * ```
 */
export function customFunction<Inputs extends readonly unknown[]>(
  options: FunctionOptions<Inputs>,
): (...inputs: Inputs) => Tensor {
  if (options === undefined)
    throw badOption('customFunction', 'an object { name, forward, backward }', 'undefined');
  checkOptions('customFunction', options, functionOptions);
  const { name, forward, backward } = options;
  checkValue('customFunction: forward', forward, aFunction);
  checkValue('customFunction: backward', backward, aFunction);
  return (...inputs) => {
    const tensors = inputs.map((input) => (input instanceof Tensor ? input : null));
    const needsGrad = tensors.map((tensor) => tensor?.requiresGrad === true);
    const context = new FunctionContext(needsGrad);
    return scope(() => {
      const result = noGrad(() => forward(context, ...inputs));
      if (!(result instanceof Tensor)) throw noResult(name, result);
      // A separate tensor, because the result may be an input, or a tensor that existed before, such as a parameter.
      const out = result.detach();
      if (!isGradEnabled() || !needsGrad.includes(true)) return out;
      const known = tensors.map((tensor): Input | null => {
        if (tensor === null) return null;
        const { dtype, shape, device, target } = tensor;
        return { dtype, shape, device, target };
      });
      const targets = known.map((input) => input?.target ?? null);
      return record(name, out, targets, context.storages(), (grad, graph) => {
        if (graph) {
          const own = graphOf(graph);
          const given = context.differentiably(() => backward(context, own.grad));
          sendTensors(name, own, known, asList(name, known.length, given));
          return;
        }
        scope(() => {
          const gradient = created(grad.retain(), out.shape);
          const given = noGrad(() => backward(context, gradient));
          sendGradients(name, known, asList(name, known.length, given));
        });
      });
    });
  };
}
