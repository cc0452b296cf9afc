// Module finds its parameters and sub-modules in its own fields, also inside arrays, and names them by their path
// ("layers.0.weight"). A subclass assigns fields in its constructor and writes a forward method.
import { kernels } from '../backends/index.ts';
import { badStateDict } from '../errors.ts';
import { type GradParam, gradParamsSymbol } from '../protocol.ts';
import { sameShape } from '../shape.ts';
import type { Tensor } from '../tensor.ts';
import type { ZeroGradOptions } from '../tensor-grad.ts';
import { gradParams } from './grad-params.ts';
import { isParameter } from './parameter.ts';

type Named<T> = [name: string, value: T];

/** A module that takes one tensor and gives one. */
export interface Layer extends Module {
  forward(input: Tensor): Tensor;
}

export abstract class Module {
  /** Whether the module trains (true) or is evaluated; see train() and eval(). */
  training = true;

  /** The fields that are searched for parameters and modules. */
  protected members(): Iterable<Named<unknown>> {
    return Object.entries(this);
  }

  /** Direct and indirect members that `accept` takes, with their paths; modules inside modules are entered. */
  *#walk<T>(
    accept: (value: unknown) => value is T,
    prefix = '',
    path: readonly Module[] = [],
  ): Generator<Named<T>> {
    if (path.includes(this)) return;
    const inside = [...path, this];
    const visit = function* (name: string, value: unknown): Generator<Named<T>> {
      if (accept(value)) yield [name, value];
      if (value instanceof Module) yield* value.#walk(accept, `${name}.`, inside);
      if (Array.isArray(value)) for (const [i, item] of value.entries()) yield* visit(`${name}.${i}`, item);
    };
    for (const [name, value] of this.members()) yield* visit(prefix + name, value);
  }

  /** Every parameter once, with its first name, in the order of definition. */
  namedParameters(): Named<Tensor>[] {
    const seen = new Set<Tensor>();
    return Array.from(this.#walk(isParameter)).filter(([, parameter]) => {
      const isNew = !seen.has(parameter);
      seen.add(parameter);
      return isNew;
    });
  }

  parameters(): Tensor[] {
    return this.namedParameters().map(([, parameter]) => parameter);
  }

  /** Sets `training` here and in all sub-modules. */
  train(mode = true): this {
    this.training = mode;
    const isModule = (value: unknown): value is Module => value instanceof Module;
    for (const [, module] of this.#walk(isModule)) module.training = mode;
    return this;
  }

  eval(): this {
    return this.train(false);
  }

  /** Drops all gradients, or fills them with zero; see Tensor.zeroGrad. */
  zeroGrad(options?: ZeroGradOptions): void {
    for (const parameter of this.parameters()) if (parameter.requiresGrad) parameter.zeroGrad(options);
  }

  /** The parameters by name: the tensors themselves, not copies. A shared parameter appears under each of its names. */
  stateDict(): Record<string, Tensor> {
    return Object.fromEntries(this.#walk(isParameter));
  }

  /**
   * Copies values into the parameters; `dict` stays the caller's. Everything is checked first: shapes, and with
   * `strict` (default) that no name is missing or unexpected.
   */
  loadStateDict(dict: Readonly<Record<string, Tensor>>, options: { readonly strict?: boolean } = {}): void {
    const own = new Map(this.#walk(isParameter));
    const given = new Map(Object.entries(dict));
    const problems: string[] = [];
    if (options.strict ?? true) {
      const missing = [...own.keys()].filter((name) => !given.has(name));
      const unexpected = [...given.keys()].filter((name) => !own.has(name));
      if (missing.length > 0) problems.push(`missing ${missing.join(', ')}`);
      if (unexpected.length > 0) problems.push(`unexpected ${unexpected.join(', ')}`);
    }
    for (const [name, parameter] of own) {
      const value = given.get(name);
      if (value && !sameShape(value.shape, parameter.shape)) {
        problems.push(`${name} expected [${parameter.shape.join(', ')}], got [${value.shape.join(', ')}]`);
      }
    }
    if (problems.length > 0) throw badStateDict(problems);
    for (const [name, parameter] of own) {
      const value = given.get(name);
      if (value && value !== parameter) kernels().copy(parameter.shape, parameter.strided, value.strided);
    }
  }

  /** The trainable parameters for distributed training; satisfies @ringwise/ddp's GradParam. */
  [gradParamsSymbol](): GradParam[] {
    return gradParams(this.namedParameters());
  }
}
