// Base of all optimisers: holds parameters in groups with options, changes their values in place by their
// gradients, and saves and loads its state.

import { Leaf } from '../autograd/leaf.ts';
import type { GradTarget } from '../autograd/target.ts';
import { foreignMember, notParams } from '../checks/argument-errors.ts';
import { refuseForeign } from '../checks/foreign-members.ts';
import { checkOptions, type OptionChecks } from '../checks/options.ts';
import { anything, aTensor, type Check, checkValue, nonNegative } from '../checks/value-checks.ts';
import { enableGrad, scope } from '../core/context.ts';
import type { Shape } from '../core/shape.ts';
import { Tensor } from '../core/tensor.ts';
import { type ZeroGradOptions, zeroGradOptions } from '../core/tensor-grad.ts';
import { badOption, badStateDict, shown, type TensorError } from '../errors.ts';
import { ParamState } from './param-state.ts';
import {
  checkIsState,
  checkState,
  type OptimizerState,
  type SavedOptimizerState,
  withTensors,
} from './state.ts';

/** Options that the parameter groups of every optimiser have. */
export interface LrOptions {
  /** Learning rate. */
  lr: number;
}

/** The options of a group, all of them present. A program may change them between steps. */
export type AllOptions<O> = { -readonly [Name in keyof O]-?: O[Name] };

/** A parameter with its name, as namedParameters() lists them. */
export type NamedParam = readonly [name: string, param: Tensor];

/** Parameters and their options. */
export type ParamGroup<O> = O & {
  readonly params: readonly Tensor[];
  /** The names of the parameters, if the optimiser was made with names. */
  readonly paramNames?: readonly string[];
  /** The learning rate from which schedules compute. The first schedule sets it. */
  initialLr?: number;
};

/** Parameters with their own options; omitted options are those of the optimiser. */
export type GroupOptions<O> = Partial<O> & { readonly params: Iterable<Tensor> | Iterable<NamedParam> };

/** One group of parameters, with or without names, or several groups. */
export type OptimizerParams<O> = Iterable<Tensor> | Iterable<NamedParam> | Iterable<GroupOptions<O>>;

const isParam = (item: unknown): boolean => item instanceof Tensor;
const isNamed = (item: unknown): item is NamedParam =>
  Array.isArray(item) && item.length === 2 && typeof item[0] === 'string' && isParam(item[1]);
const isGroup = (item: unknown): boolean => {
  const params: unknown = (item as { readonly params?: unknown } | null)?.params;
  return typeof params === 'object' && params !== null && Symbol.iterator in params;
};

/** Converts the parameters or groups to a list. Throws if the argument is neither. */
function listOf<O>(
  params: OptimizerParams<O>,
): readonly Tensor[] | readonly NamedParam[] | readonly GroupOptions<O>[] {
  const isList = typeof params === 'object' && params !== null && Symbol.iterator in params;
  const list: unknown[] = isList ? [...params] : [];
  if (isList && [isParam, isNamed, isGroup].some((is) => list.every(is))) return list as readonly Tensor[];
  const odd = isList ? list.find((item) => !isParam(item)) : params;
  throw notParams(
    'optimizer: params',
    'a list of tensors, of pairs [name, tensor], or of groups { params, … }',
    odd,
  );
}

const areTensors = (given: readonly unknown[]): given is readonly Tensor[] => given.every(isParam);
const areNamed = (given: readonly unknown[]): given is readonly NamedParam[] => given.every(isNamed);

/** Returns `defaults` overridden by `options`. Options that are undefined count as left out. */
export const completed = <O extends object>(defaults: O, options: Partial<O>): O => ({
  ...defaults,
  ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
});

/** Returns a copy whose lists, such as betas, are copies, too: otherwise writing to one changes those of others. */
export const withOwnLists = <O extends object>(options: O): O =>
  Object.fromEntries(
    Object.entries(options).map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]),
  ) as O;

const isNumber = (value: unknown): boolean => typeof value === 'number' && !Number.isNaN(value);
const isNumberOrNull = (value: unknown): boolean => value === null || isNumber(value);

/** Base of the optimisers: groups of parameters, each with its own options. */
export abstract class Optimizer<O extends LrOptions = LrOptions> {
  /** Groups of parameters with options of their own. Options may be changed between steps. */
  readonly groups: ParamGroup<O>[] = [];
  readonly #defaults: O;
  readonly #known: OptionChecks;
  /** Names of the options that are numbers, and of those that are lists of numbers. */
  readonly #numbers: readonly string[];
  /** With their lengths. */
  readonly #lists: readonly (readonly [name: string, length: number])[];
  readonly #states = new Map<Tensor, ParamState>();

  /** Makes the groups. `defaults` has every option of the optimiser, `options` those that the user chose. */
  constructor(params: OptimizerParams<O>, defaults: O, options: Partial<O> = {}) {
    this.#known = new Map(Object.keys(defaults).map((name) => [name, anything]));
    checkOptions(this.constructor.name, options, this.#known);
    this.#defaults = completed(defaults, options);
    const entries = Object.entries(defaults as unknown as Record<string, unknown>);
    this.#numbers = entries.filter(([, value]) => typeof value === 'number').map(([name]) => name);
    this.#lists = entries.flatMap(([name, value]) =>
      Array.isArray(value) ? [[name, value.length] as const] : [],
    );
    const given = listOf(params);
    const known = new Set<Tensor>();
    if (areTensors(given) || areNamed(given)) this.#add(given, {}, known);
    else for (const group of given) this.#addGroup(group, known);
    if (this.params.length === 0) throw badOption('optimizer: params', 'at least one parameter', 'none');
  }

  /** Throws ERR_TENSOR_ARGUMENT for invalid options. */
  protected abstract check(options: O): void;

  /** Throws ERR_TENSOR_ARGUMENT for a parameter that this optimiser does not take. */
  protected checkParam(_param: Tensor): void {}

  /** Returns the names of the state tensors that a parameter of a group with these options has. */
  protected abstract remembers(options: O, param: Tensor): readonly string[];

  /**
   * Returns the shape of a state tensor: by default that of its parameter; null for a number, which is kept in float64.
   */
  protected stateShape(_name: string, param: Tensor): Shape | null {
    return param.shape;
  }

  /**
   * Throws ERR_TENSOR_ARGUMENT if an option of a group must be a number and is not. A program may write these options
   * between steps, and a step with NaN or undefined would make all parameters NaN.
   */
  protected checkNumbers(): void {
    for (const group of this.groups as unknown as Record<string, unknown>[]) {
      for (const name of this.#numbers) if (!isNumber(group[name])) throw this.#notANumber(name, group[name]);
      for (const [name, length] of this.#lists) {
        const list = group[name];
        if (!Array.isArray(list) || list.length !== length || !list.every(isNumberOrNull))
          throw this.#notANumber(name, list, `${length} numbers`);
      }
    }
  }

  #notANumber(name: string, value: unknown, expected = 'a number'): TensorError {
    return badOption(`${this.constructor.name}: ${name} of a group`, expected, shown(value));
  }

  /**
   * Changes every parameter that has a gradient. `closure`, if given, runs before: it drops the gradients, computes the
   * loss, calls backward on it, and returns it. step() then returns that loss.
   */
  abstract step(closure?: () => Tensor): unknown;

  /** Adds a group of parameters, for example of ones that have been unfrozen. */
  addParamGroup(group: GroupOptions<O>): void {
    this.#addGroup(group, new Set(this.params));
  }

  /** Adds a group. `known` has the parameters of the other groups, and then also those of this one. */
  #addGroup(group: GroupOptions<O>, known: Set<Tensor>): void {
    checkValue(`${this.constructor.name}: addParamGroup`, group, {
      expected: 'a group { params, … }',
      fits: isGroup,
    });
    const { params, ...options } = group;
    checkOptions(`${this.constructor.name}: group`, options, this.#known);
    const list = listOf<O>(params);
    if (!areTensors(list) && !areNamed(list))
      throw badOption('addParamGroup: params', 'tensors, or pairs [name, tensor]', 'groups');
    this.#add(list, options as unknown as Partial<O>, known);
  }

  #add(given: readonly Tensor[] | readonly NamedParam[], chosen: Partial<O>, known: Set<Tensor>): void {
    const options = withOwnLists(completed(this.#defaults, chosen));
    this.check(options);
    const isNamed = given.length > 0 && areNamed(given);
    const params = isNamed ? given.map(([, param]) => param) : (given as readonly Tensor[]);
    const names = isNamed ? { paramNames: given.map(([name]) => name) } : {};
    const [first] = this.groups;
    if (first && isNamed !== (first.paramNames !== undefined))
      throw badOption(
        'optimizer: params',
        'all groups with names, or all without',
        `a group ${isNamed ? 'with' : 'without'} names`,
      );
    for (const param of params) {
      if (!param.isLeaf) throw badOption('optimizer: params', 'parameters', 'the result of an operation');
      this.checkParam(param);
      if (known.has(param)) throw badOption('optimizer: params', 'each parameter once', 'one twice');
      known.add(param);
    }
    this.groups.push({ ...options, params, ...names });
  }

  /** All parameters, in the order of the groups. */
  get params(): Tensor[] {
    return this.groups.flatMap((group) => group.params);
  }

  /** The learning rate of the first group. Setting it sets the rate of all groups. */
  get lr(): number {
    return this.groups[0]!.lr;
  }

  set lr(value: number) {
    checkValue('optimizer: lr', value, nonNegative);
    for (const group of this.groups) group.lr = value;
  }

  /** Returns the state of a parameter, which is empty before its first step. */
  protected stateOf(param: Tensor): ParamState {
    const found = this.#states.get(param);
    if (found) return found;
    const state = new ParamState();
    this.#states.set(param, state);
    return state;
  }

  /** Drops all gradients, or fills them with zero; see Tensor.zeroGrad. */
  zeroGrad(options?: ZeroGradOptions): void {
    checkOptions('zeroGrad', options, zeroGradOptions);
    for (const param of this.params) if (param.requiresGrad) param.zeroGrad(options);
  }

  /**
   * Returns the state that is needed to continue later: plain JSON, and tensors named "<state>.<position of the
   * parameter>". The tensors are the optimiser's own, which later steps change.
   */
  stateDict(): OptimizerState {
    const { params } = this;
    const tensors: Record<string, Tensor> = {};
    for (const [i, param] of params.entries())
      for (const [name, tensor] of this.#states.get(param)?.tensors ?? []) tensors[`${name}.${i}`] = tensor;
    let first = 0;
    return {
      groups: this.groups.map((group) => {
        const positions = group.params.map((_, i) => first + i);
        first += positions.length;
        return { ...withOwnLists(group as object), params: positions };
      }),
      steps: params.map((param) => this.#states.get(param)?.steps ?? 0),
      tensors,
    };
  }

  /**
   * Copies options and state tensors from `state`, which the caller keeps. Its tensors may be plain data, as a snapshot
   * has them. Checks everything before it copies.
   */
  loadStateDict(state: SavedOptimizerState): void {
    checkIsState(state);
    scope(() => this.#load(withTensors(state)));
  }

  #load(state: OptimizerState): void {
    const { params } = this;
    const names = this.groups.flatMap((group, i) =>
      group.params.map((param) => this.remembers((state.groups[i] ?? group) as unknown as O, param)),
    );
    const shapeOf = (name: string, param: Tensor): Shape => this.stateShape(name, param) ?? [];
    const problems = checkState(state, this.groups, params, names, shapeOf);
    if (problems.length > 0) throw badStateDict(problems);
    for (const [i, group] of state.groups.entries()) this.check({ ...this.groups[i]!, ...group });
    for (const [i, { params: _, ...options }] of state.groups.entries())
      Object.assign(this.groups[i]!, withOwnLists(options));
    for (const [i, param] of params.entries()) {
      this.stateOf(param).load(
        param,
        state.steps[i]!,
        (name) => state.tensors[`${name}.${i}`],
        names[i]!,
        (name) => this.stateShape(name, param),
      );
    }
  }

  static {
    const properties = { param_groups: 'groups', paramGroups: 'groups' };
    refuseForeign(Optimizer.prototype, 'optimizer', foreignMember, { properties });
  }
}

/** Computes the loss by the closure of a step, if there is one; also inside noGrad(). */
export function lossOf(op: string, closure: (() => Tensor) | null): Tensor | undefined {
  if (closure === null) return undefined;
  checkValue(`${op}: step`, closure, {
    expected: 'nothing, or a function that computes the loss, calls backward and returns the loss',
    fits: (value) => typeof value === 'function',
  });
  const loss = enableGrad(closure);
  checkValue(`${op}: the result of the function of step`, loss, aTensor);
  return loss;
}

/** Returns the gradient of a parameter, or null if it has none. */
export const gradOf = ({ target }: Tensor): GradTarget['grad'] => {
  if (target instanceof Leaf) target.settle();
  return target?.grad ?? null;
};

/** Checks all options of an optimiser, after defaults have been filled in. */
export function checkAll<O extends object>(
  options: O,
  checks: { readonly [Name in keyof AllOptions<O>]: Check },
): void {
  for (const [name, check] of Object.entries<Check>(checks))
    checkValue(`optimizer: ${name}`, (options as Record<string, unknown>)[name], check);
}
