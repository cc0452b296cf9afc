// Containers of parameters: ParameterList and ParameterDict.
import { notModules } from '../../checks/argument-errors.ts';
import type { Tensor } from '../../core/tensor.ts';
import { Module } from '../module.ts';
import { isParameter, parameter } from '../parameter.ts';

/** Returns a parameter as it is, and makes one of any other tensor. Throws unless it is a leaf of a float dtype. */
const asParameter = (tensor: Tensor): Tensor => (isParameter(tensor) ? tensor : parameter(tensor));

/**
 * Holds parameters with the names "0", "1", … in a list that can grow. Tensors become parameters. An array of
 * parameters in a field of a module also works; its parameters are named after the field.
 */
export class ParameterList extends Module implements Iterable<Tensor> {
  /** The parameters, in order. */
  readonly items: Tensor[];

  constructor(items: Iterable<Tensor> = []) {
    super();
    if (typeof items?.[Symbol.iterator] !== 'function')
      throw notModules('ParameterList', 'a list of tensors', items);
    this.items = Array.from(items, asParameter);
  }

  protected override members(): Iterable<[string, unknown]> {
    return Object.entries(this.items);
  }

  /** Number of parameters. */
  get length(): number {
    return this.items.length;
  }

  [Symbol.iterator](): Iterator<Tensor> {
    return this.items[Symbol.iterator]();
  }

  /** Returns the parameter at a position; negative positions count from the end. */
  at(index: number): Tensor | undefined {
    return this.items.at(index);
  }

  /** Adds parameters at the end. Returns this. */
  push(...items: readonly Tensor[]): this {
    this.items.push(...items.map(asParameter));
    return this;
  }
}

/** Holds parameters by name, in the order in which they were added. Tensors become parameters. */
export class ParameterDict extends Module implements Iterable<[string, Tensor]> {
  /** The parameters by name. */
  readonly items: Map<string, Tensor>;

  constructor(items: Readonly<Record<string, Tensor>> = {}) {
    super();
    if (typeof items !== 'object' || items === null)
      throw notModules('ParameterDict', 'an object of tensors by name', items);
    this.items = new Map(Object.entries(items).map(([name, tensor]) => [name, asParameter(tensor)]));
  }

  protected override members(): Iterable<[string, unknown]> {
    return this.items;
  }

  [Symbol.iterator](): Iterator<[string, Tensor]> {
    return this.items[Symbol.iterator]();
  }

  /** Returns the parameter of a name, or undefined. */
  get(name: string): Tensor | undefined {
    return this.items.get(name);
  }

  /** Adds a parameter, or replaces the one of that name. Returns this. */
  set(name: string, tensor: Tensor): this {
    this.items.set(name, asParameter(tensor));
    return this;
  }
}
