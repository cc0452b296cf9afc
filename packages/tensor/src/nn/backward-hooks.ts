// Full backward hooks of modules, as in PyTorch: a call of forward replaces its tensor arguments and results by other
// tensors over the same memory, at which backward gathers the gradients.
import { type Gradients, gathered, hasRecorded } from '../autograd/gathered.ts';
import { zeros } from '../core/creation.ts';
import { isFloat } from '../core/dtype.ts';
import { Tensor } from '../core/tensor.ts';
import { gradientCount, inputsHaveNoGradient } from '../errors.ts';

/**
 * A hook that runs when the gradients of a module's tensor arguments are known. `gradInput` has one entry for each
 * argument of forward: zeros for tensors that no gradient reached, null for other values. `gradOutput` has the
 * gradients of the results, null where none arrived. The hook may return gradients that replace `gradInput`. The
 * gradients are disposed when the hook ends: use keep() or clone() for those that must stay.
 */
export type BackwardHook<M> = (
  module: M,
  gradInput: Gradients,
  gradOutput: Gradients,
) => Gradients | undefined;

/** A hook that runs when the gradients of a module's results are known. It may return replacements for them. */
export type BackwardPreHook<M> = (module: M, gradOutput: Gradients) => Gradients | undefined;

const asTensors = (values: readonly unknown[]): (Tensor | null)[] =>
  values.map((value) => (value instanceof Tensor ? value : null));

/** Returns the values, with tensors replaced by the entries of `tensors` at the same positions. */
const withTensors = (values: readonly unknown[], tensors: Gradients): unknown[] =>
  values.map((value, i) => tensors[i] ?? value);

/** One call of forward. */
export class HookedCall {
  readonly #module: object;
  readonly #before: readonly BackwardPreHook<never>[];
  readonly #after: readonly BackwardHook<never>[];
  /** The number of arguments of forward. */
  #argCount = 0;
  /** Whether an argument requires a gradient, so that the hooks run at the arguments. */
  #hasInputs = false;
  /** The argument of the hooks at the inputs; kept until these have run. */
  #gradOutput: Gradients | null = null;

  constructor(
    module: object,
    before: Iterable<BackwardPreHook<never>>,
    after: Iterable<BackwardHook<never>>,
  ) {
    this.#module = module;
    this.#before = [...before];
    this.#after = [...after];
  }

  /** Returns the arguments to pass to forward. */
  takeInputs(args: readonly unknown[]): readonly unknown[] {
    const tensors = asTensors(args);
    this.#argCount = args.length;
    this.#hasInputs = this.#after.length > 0 && hasRecorded(tensors);
    if (!this.#hasInputs) return args;
    const like = tensors.map((tensor) => {
      if (tensor === null || !isFloat(tensor.dtype)) return null;
      const { shape, dtype, device } = tensor;
      return () => zeros(shape, { dtype, device });
    });
    return withTensors(
      args,
      gathered('backwardHook', tensors, (found) =>
        this.#atInputs(found.map((grad, i) => grad ?? like[i]?.() ?? null)),
      ),
    );
  }

  /** Returns the result to return to the caller of forward. */
  takeOutput(output: unknown): unknown {
    const values = Array.isArray(output) ? output : [output];
    const tensors = asTensors(values);
    if (!hasRecorded(tensors)) return output;
    const replaced = withTensors(
      values,
      gathered(
        'backwardHook',
        tensors,
        (found) => this.#atOutputs(found),
        () => this.#gradOutput,
      ),
    );
    return Array.isArray(output) ? replaced : replaced[0];
  }

  #atOutputs(found: Gradients): Gradients {
    let gradOutput = found;
    for (const hook of this.#before) {
      const other = hook(this.#module as never, gradOutput);
      if (!other) continue;
      if (other.length !== found.length)
        throw gradientCount('registerFullBackwardPreHook', found.length, other.length);
      gradOutput = other;
    }
    if (this.#hasInputs) this.#keepUntilInputs(gradOutput);
    else this.#withoutInputs(gradOutput);
    return gradOutput;
  }

  #keepUntilInputs(gradOutput: Gradients): void {
    this.#release();
    // Detached tensors, which can be disposed; tensors of a graph are part of it.
    this.#gradOutput = gradOutput.map((grad) => (grad?.requiresGrad === false ? grad.detach() : grad));
  }

  /** Disposes the gradients of the results, unless they are part of a graph. */
  #release(): void {
    for (const grad of this.#gradOutput ?? []) if (grad?.requiresGrad === false) grad.dispose();
    this.#gradOutput = null;
  }

  #atInputs(found: Gradients): Gradients {
    if (this.#gradOutput === null) return found;
    let gradInput = found;
    for (const hook of this.#after) {
      const other = hook(this.#module as never, gradInput, this.#gradOutput);
      if (!other) continue;
      if (other.length !== found.length)
        throw gradientCount('registerFullBackwardHook', found.length, other.length);
      gradInput = other;
    }
    this.#release();
    return gradInput;
  }

  /** Calls the hooks of a module none of whose arguments requires a gradient. */
  #withoutInputs(gradOutput: Gradients): void {
    const none = new Array<null>(this.#argCount).fill(null);
    for (const hook of this.#after) {
      const other = hook(this.#module as never, none, gradOutput);
      if (other?.some((grad) => grad !== null)) throw inputsHaveNoGradient();
    }
  }
}
