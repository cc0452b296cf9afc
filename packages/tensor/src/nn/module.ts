// Module finds its parameters, buffers and sub-modules in its own fields, also inside arrays, and names them by their
// path ("layers.0.weight"). It does not find fields whose names begin with #, nor what objects, Maps and Sets hold. A
// subclass assigns fields in its constructor and writes a forward method.

import { inspect } from 'node:util';
import { foreignMember } from '../checks/argument-errors.ts';
import { refuseForeign } from '../checks/foreign-members.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { aFunction, checkState, checkValue, flag } from '../checks/value-checks.ts';
import { type DType, isDType, isFloat } from '../core/dtype.ts';
import {
  buffersSymbol,
  type FrozenParam,
  frozenParamsSymbol,
  type GradParam,
  gradParamsSymbol,
  type StateBuffer,
} from '../core/protocol.ts';
import type { Tensor } from '../core/tensor.ts';
import { type ZeroGradOptions, zeroGradOptions } from '../core/tensor-grad.ts';
import { type DeviceName, deviceOf } from '../device/device.ts';
import { needsFloat } from '../errors.ts';
import type { BackwardHook, BackwardPreHook } from './backward-hooks.ts';
import { isBuffer, isPersistent } from './buffer.ts';
import { guardFields } from './fields.ts';
import { frozenParams, gradParams, stateBuffers } from './grad-params.ts';
import { warnOfHidden } from './hidden.ts';
import {
  addBackwardHook,
  addBackwardPreHook,
  addHook,
  addPreHook,
  type Hook,
  type PreHook,
} from './hooks.ts';
import { isNumbers, outline } from './outline.ts';
import { isParameter } from './parameter.ts';
import { type LoadResult, loadInto, named, type StateDict } from './state-dict.ts';

/** A hook that runs before forward. May return an array that replaces the arguments, or a tensor as the only one. */
export type ForwardPreHook = PreHook<Module>;
/** A hook that runs after a module's forward. May return a value that replaces the result. */
export type ForwardHook = Hook<Module>;
/** A hook of registerFullBackwardHook(). It may return replacements for the gradients of the arguments. */
export type FullBackwardHook = BackwardHook<Module>;
/** A hook of registerFullBackwardPreHook(). It may return replacements for the gradients of the results. */
export type FullBackwardPreHook = BackwardPreHook<Module>;

type Named<T> = [name: string, value: T];

/** A module whose forward takes one tensor and returns one. */
export interface Layer extends Module {
  /** Returns the result for one input, whose first dimension is usually the batch. */
  forward(input: Tensor): Tensor;
}

const isModule = (value: unknown): value is Module => value instanceof Module;

/** Returns each value once, with its first name. */
function unique<T>(named: Iterable<Named<T>>): Named<T>[] {
  const first = new Map<T, string>();
  for (const [name, value] of named) if (!first.has(value)) first.set(value, name);
  return Array.from(first, ([value, name]) => [name, value]);
}

const values = <T>(named: readonly Named<T>[]): T[] => named.map(([, value]) => value);

/** Options of loadStateDict(). */
export interface LoadStateDictOptions {
  /** Whether a missing or unexpected name is an error. Default true. */
  readonly strict?: boolean;
}

const loadStateDictOptions = optionChecks<LoadStateDictOptions>({ strict: flag });

/**
 * Base of layers and models. Fields that hold tensors made by parameter() and buffer(), and fields that
 * hold modules, belong to it under their names.
 */
export abstract class Module {
  /** Whether the module trains (true) or is evaluated; see train() and eval(). */
  training = true;

  /** Returns the fields that are searched for parameters, buffers and modules. */
  protected members(): Iterable<Named<unknown>> {
    return Object.entries(this);
  }

  /**
   * Yields the values of the fields, and the items of arrays in them, also nested, except items of lists of numbers.
   */
  *#direct(): Generator<Named<unknown>> {
    const visit = function* (name: string, value: unknown): Generator<Named<unknown>> {
      if (Array.isArray(value) && !isNumbers(value))
        for (const [i, item] of value.entries()) yield* visit(`${name}.${i}`, item);
      else yield [name, value];
    };
    guardFields(this);
    for (const [name, value] of this.members()) yield* visit(name, value);
  }

  /**
   * Yields the direct and indirect members for which `accept` is true, with their paths. Does not enter a
   * module inside itself.
   */
  *#walk<T>(
    accept: (value: unknown) => value is T,
    prefix = '',
    path: readonly Module[] = [],
  ): Generator<Named<T>> {
    if (path.includes(this)) return;
    const inside = [...path, this];
    for (const [name, value] of this.#direct()) {
      if (accept(value)) yield [prefix + name, value];
      if (isModule(value)) yield* value.#walk(accept, `${prefix}${name}.`, inside);
    }
  }

  /** Returns every parameter once, with its first name, in the order of definition. */
  namedParameters(): Named<Tensor>[] {
    const found = unique(this.#walk(isParameter));
    const parametersOf = (value: unknown) => (isModule(value) ? value.parameters() : []);
    warnOfHidden(this, () => this.modules(), found, parametersOf);
    return found;
  }

  /** Returns the parameters of this module and of all modules inside it, each once. */
  parameters(): Tensor[] {
    return values(this.namedParameters());
  }

  /** Returns every buffer once, including buffers that are not saved. */
  namedBuffers(): Named<Tensor>[] {
    return unique(this.#walk(isBuffer));
  }

  /** Returns the buffers of this module and of all modules inside it, each once. */
  buffers(): Tensor[] {
    return values(this.namedBuffers());
  }

  /** Returns this module, under the name '', and every module below it, each once. */
  namedModules(): Named<Module>[] {
    return unique([['', this], ...this.#walk(isModule)]);
  }

  /** Returns this module and all modules inside it, each once. */
  modules(): Module[] {
    return values(this.namedModules());
  }

  /** Returns the modules in the fields of this one, each once. */
  namedChildren(): Named<Module>[] {
    return unique(Array.from(this.#direct()).filter((entry): entry is Named<Module> => isModule(entry[1])));
  }

  /** Returns the modules directly inside this one. */
  children(): Module[] {
    return values(this.namedChildren());
  }

  /** Calls `fn` once with every module: children in order, then the module that holds them. */
  apply(fn: (module: Module) => void): this {
    checkValue('apply', fn, aFunction);
    for (const module of this.#fromBelow(new Set())) fn(module);
    return this;
  }

  *#fromBelow(seen: Set<Module>): Generator<Module> {
    seen.add(this);
    for (const child of this.children()) if (!seen.has(child)) yield* child.#fromBelow(seen);
    yield this;
  }

  /** Sets `training` here and in all sub-modules. The default, true, is for training. */
  train(mode = true): this {
    checkValue('train: mode', mode, flag);
    return this.apply((module) => {
      module.training = mode;
    });
  }

  /** Does the same as train(false). */
  eval(): this {
    return this.train(false);
  }

  /**
   * Freezes all parameters (false) or makes them trainable again. Freezing drops their gradients; gradient
   * listeners stay registered.
   */
  requiresGrad_(mode = true): this {
    checkValue('requiresGrad_: mode', mode, flag);
    for (const parameter of this.parameters()) parameter.requiresGrad = mode;
    return this;
  }

  /**
   * Converts floating parameters, their gradients and floating buffers, or moves all parameters and buffers to a
   * device. Does so in place, so that an optimiser that holds them stays valid; its state follows in its next step.
   * Throws while a gradient is bound by DDP: convert before you wrap. Checks all tensors before it converts any.
   */
  to(target: DType | DeviceName): this {
    const all = [...this.parameters(), ...this.buffers()];
    if (!isDType(target)) {
      const device = deviceOf(target, 'Module.to');
      for (const tensor of all) tensor.checkConvertible(tensor.dtype, device);
      for (const tensor of all) tensor.convert(tensor.dtype, device);
      return this;
    }
    const dtype = target;
    if (!isFloat(dtype)) throw needsFloat('Module.to', dtype);
    const floats = all.filter((tensor) => isFloat(tensor.dtype));
    for (const tensor of floats) tensor.checkConvertible(dtype, tensor.device);
    for (const tensor of floats) tensor.convert(dtype);
    return this;
  }

  /** Runs `hook` before every forward of this module. Returns a function that removes it. */
  registerForwardPreHook(hook: ForwardPreHook): () => void {
    checkValue('registerForwardPreHook', hook, aFunction);
    return addPreHook(this, hook);
  }

  /** Runs `hook` after every forward of this module. Returns a function that removes it. */
  registerForwardHook(hook: ForwardHook): () => void {
    checkValue('registerForwardHook', hook, aFunction);
    return addHook(this, hook);
  }

  /**
   * Runs `hook(module, gradInput, gradOutput)` in each backward over a later call of forward, once the gradients of
   * its arguments are known: a list with one for each argument, zeros for tensors of floats that no gradient reached,
   * null for other values. If no argument requires a gradient, it runs when those of the results are known, and
   * `gradInput` has only null. `gradOutput` has one for each result that is a tensor, or an item of a list; null where
   * none arrived. May return a list that replaces `gradInput`. The gradients are disposed afterwards, unless keep() or
   * clone() keeps them. Returns a function that removes the hook from later calls.
   */
  registerFullBackwardHook(hook: FullBackwardHook): () => void {
    checkValue('registerFullBackwardHook', hook, aFunction);
    return addBackwardHook(this, hook);
  }

  /**
   * Runs `hook(module, gradOutput)` in each backward over a later call of forward, before the gradients of its results
   * are used. It may return a list that replaces `gradOutput`. Returns a function that removes the hook.
   */
  registerFullBackwardPreHook(hook: FullBackwardPreHook): () => void {
    checkValue('registerFullBackwardPreHook', hook, aFunction);
    return addBackwardPreHook(this, hook);
  }

  /** Drops all gradients, or fills them with zero; see Tensor.zeroGrad. */
  zeroGrad(options?: ZeroGradOptions): void {
    checkOptions('zeroGrad', options, zeroGradOptions);
    for (const parameter of this.parameters()) if (parameter.requiresGrad) parameter.zeroGrad(options);
  }

  /**
   * Returns the parameters and persistent buffers by name: the tensors themselves, not copies. A shared
   * parameter appears under each of its names. Throws ERR_TENSOR_STATE_DICT if two tensors have one name.
   */
  stateDict(): Record<string, Tensor> {
    const isSaved = (value: unknown): value is Tensor =>
      isParameter(value) || (isBuffer(value) && isPersistent(value));
    return named(this.constructor.name, this.#walk(isSaved));
  }

  /**
   * Copies values into parameters and persistent buffers; the caller keeps `dict`. Before it writes, checks all shapes
   * and, with `strict` (default), that no name is missing or unexpected. Returns these names.
   */
  loadStateDict(dict: StateDict, options: LoadStateDictOptions = {}): LoadResult {
    checkOptions('loadStateDict', options, loadStateDictOptions);
    checkState('loadStateDict', dict);
    return loadInto(this.stateDict(), dict, options.strict ?? true);
  }

  /** Returns an outline: the modules inside this one by name, and the shapes of their parameters and buffers. */
  toString(): string {
    return this.#outline([]);
  }

  #outline(path: readonly Module[]): string {
    const inside = [...path, this];
    const members = Array.from(this.#direct()).filter(([name]) => name !== 'training');
    const ofModule = (value: unknown) => {
      if (!isModule(value)) return null;
      return inside.includes(value) ? `${value.constructor.name}(…)` : value.#outline(inside);
    };
    return outline(this.constructor.name, { members, ofModule });
  }

  /** Prints the outline where console.log would print every value. */
  [inspect.custom](): string {
    return this.toString();
  }

  /** Returns the trainable parameters for distributed training, in the form of @ringwise/ddp's GradParam. */
  [gradParamsSymbol](): GradParam[] {
    return gradParams(this.namedParameters());
  }

  /** Returns the frozen parameters for distributed training, which broadcasts them once from one rank to all. */
  [frozenParamsSymbol](): FrozenParam[] {
    return frozenParams(this.namedParameters());
  }

  /** Returns the memory of the buffers for distributed training, which broadcasts them from one rank to all. */
  [buffersSymbol](): StateBuffer[] {
    return stateBuffers(this.namedBuffers());
  }

  static {
    const bothCases = (name: string, instead: string) => ({
      [name]: instead,
      [name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())]: instead,
    });
    const toDtype = (dtype: string) => `to('${dtype}')`;
    const methods = {
      cpu: "to('cpu')",
      cuda: "to('cuda'), or to('cuda:1') for another device",
      float: toDtype('float32'),
      double: toDtype('float64'),
      half: toDtype('float16'),
      bfloat16: toDtype('bfloat16'),
      predict: 'forward(x)',
      summary: 'namedParameters()',
      ...bothCases('register_parameter', 'a field: this.name = parameter(tensor)'),
      ...bothCases('register_buffer', 'a field: this.name = buffer(tensor)'),
      ...bothCases('add_module', 'a field: this.name = module'),
      ...bothCases('register_module', 'a field: this.name = module'),
      ...bothCases('get_submodule', 'namedModules()'),
      ...bothCases('get_parameter', 'namedParameters()'),
    };
    refuseForeign(Module.prototype, 'model', foreignMember, { methods });
  }
}
