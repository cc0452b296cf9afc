// What every optimiser does: it holds parameters in groups with options, reads their gradients, changes their values
// in place, and saves what it remembers of the past.

import { Leaf } from '../autograd/leaf.ts';
import type { GradTarget } from '../autograd/target.ts';
import { badOption, badStateDict } from '../errors.ts';
import { Tensor } from '../tensor.ts';
import type { ZeroGradOptions } from '../tensor-grad.ts';
import { ParamState } from './param-state.ts';
import { checkState, type OptimizerState } from './state.ts';

export interface LrOptions {
  /** Learning rate. */
  lr: number;
}

/** All options of an optimiser, to be changed between steps. */
export type AllOptions<O> = { -readonly [Name in keyof O]-?: O[Name] };

/** Parameters and their options. */
export type ParamGroup<O> = O & {
  readonly params: readonly Tensor[];
  /** The learning rate from which schedules go out; set by the first schedule. */
  initialLr?: number;
};

/** Parameters with options of their own; those that are left out are the optimiser's. */
export type GroupOptions<O> = Partial<O> & { readonly params: Iterable<Tensor> };

/** One group of parameters, or several. */
export type OptimizerParams<O> = Iterable<Tensor> | Iterable<GroupOptions<O>>;

const areTensors = (given: readonly unknown[]): given is readonly Tensor[] =>
  given.every((item) => item instanceof Tensor);

/** `options` over `defaults`; what is undefined counts as left out. */
const completed = <O extends object>(defaults: O, options: Partial<O>): O => ({
  ...defaults,
  ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
});

export abstract class Optimizer<O extends LrOptions = LrOptions> {
  readonly groups: ParamGroup<O>[] = [];
  readonly #defaults: O;
  readonly #states = new Map<Tensor, ParamState>();

  /** `defaults`: every option. `options`: what the user chose of them. */
  constructor(params: OptimizerParams<O>, defaults: O, options: Partial<O> = {}) {
    this.#defaults = completed(defaults, options);
    const given = [...params];
    if (areTensors(given)) this.#add(given, {});
    else for (const group of given as GroupOptions<O>[]) this.addParamGroup(group);
    if (this.params.length === 0) throw badOption('optimizer: params', 'at least one parameter', 'none');
  }

  /** Throws ERR_TENSOR_ARGUMENT for options that make no sense. */
  protected abstract check(options: O): void;

  /** Names of what is remembered for each parameter under these options. */
  protected abstract remembers(options: O): readonly string[];

  /** Changes every parameter that has a gradient. */
  abstract step(): void;

  /** Adds parameters, for example ones that have been unfrozen. */
  addParamGroup({ params, ...options }: GroupOptions<O>): void {
    this.#add([...params], options as unknown as Partial<O>);
  }

  #add(params: readonly Tensor[], chosen: Partial<O>): void {
    const options = completed(this.#defaults, chosen);
    this.check(options);
    const known = new Set(this.params);
    for (const param of params) {
      if (!param.isLeaf) throw badOption('optimizer: params', 'parameters', 'the result of an operation');
      if (known.has(param)) throw badOption('optimizer: params', 'each parameter once', 'one twice');
      known.add(param);
    }
    this.groups.push({ ...options, params });
  }

  /** All parameters, group by group. */
  get params(): Tensor[] {
    return this.groups.flatMap((group) => group.params);
  }

  /** The learning rate of the first group. Setting it sets that of all groups. */
  get lr(): number {
    return this.groups[0]!.lr;
  }

  set lr(value: number) {
    checkedOption('lr', value);
    for (const group of this.groups) group.lr = value;
  }

  /** What is remembered for a parameter; empty before its first step. */
  protected stateOf(param: Tensor): ParamState {
    const found = this.#states.get(param);
    if (found) return found;
    const state = new ParamState();
    this.#states.set(param, state);
    return state;
  }

  /** Drops all gradients, or fills them with zero; see Tensor.zeroGrad. */
  zeroGrad(options?: ZeroGradOptions): void {
    for (const param of this.params) if (param.requiresGrad) param.zeroGrad(options);
  }

  /** Everything that is needed to go on later: plain JSON, and tensors named "<what>.<position of the parameter>". */
  stateDict(): OptimizerState {
    const { params } = this;
    const tensors: Record<string, Tensor> = {};
    for (const [i, param] of params.entries())
      for (const [name, tensor] of this.#states.get(param)?.tensors ?? []) tensors[`${name}.${i}`] = tensor;
    return {
      groups: this.groups.map((group) => {
        const positions = group.params.map((param) => params.indexOf(param));
        return { ...(group as object), params: positions };
      }),
      steps: params.map((param) => this.#states.get(param)?.steps ?? 0),
      tensors,
    };
  }

  /** Copies options and memory from `state`, which stays the caller's. Everything is checked first. */
  loadStateDict(state: OptimizerState): void {
    const { params } = this;
    const names = this.groups.flatMap((group, i) =>
      group.params.map(() => this.remembers((state.groups[i] ?? group) as unknown as O)),
    );
    const problems = checkState(state, this.groups, params, names);
    if (problems.length > 0) throw badStateDict(problems);
    for (const group of state.groups) this.check(group as unknown as O);
    for (const [i, { params: _, ...options }] of state.groups.entries())
      Object.assign(this.groups[i]!, options);
    for (const [i, param] of params.entries()) {
      this.stateOf(param).load(param, state.steps[i]!, (name) => state.tensors[`${name}.${i}`], names[i]!);
    }
  }
}

/** The gradient of a parameter, where it has one. */
export const gradOf = ({ target }: Tensor): GradTarget['grad'] => {
  if (target instanceof Leaf) target.settle();
  return target?.grad ?? null;
};

/** A number ≥ 0. */
export function checkedOption(name: string, value: number): number {
  if (!(value >= 0)) throw badOption(`optimizer: ${name}`, 'a number ≥ 0', value);
  return value;
}

/** A number from 0 to 1, without 1. */
export function checkedShare(name: string, value: number): number {
  if (!(value >= 0 && value < 1)) throw badOption(`optimizer: ${name}`, 'a number ≥ 0 and < 1', value);
  return value;
}
