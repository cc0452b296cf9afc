// Containers of parameters: ParameterList and ParameterDict.
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
  readonly items: Tensor[];

  constructor(items: Iterable<Tensor> = []) {
    super();
    this.items = Array.from(items, asParameter);
  }

  protected override members(): Iterable<[string, unknown]> {
    return Object.entries(this.items);
  }

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

  push(...items: readonly Tensor[]): this {
    this.items.push(...items.map(asParameter));
    return this;
  }
}

/** Holds parameters by name, in the order in which they were added. Tensors become parameters. */
export class ParameterDict extends Module implements Iterable<[string, Tensor]> {
  readonly items: Map<string, Tensor>;

  constructor(items: Readonly<Record<string, Tensor>> = {}) {
    super();
    this.items = new Map(Object.entries(items).map(([name, tensor]) => [name, asParameter(tensor)]));
  }

  protected override members(): Iterable<[string, unknown]> {
    return this.items;
  }

  [Symbol.iterator](): Iterator<[string, Tensor]> {
    return this.items[Symbol.iterator]();
  }

  get(name: string): Tensor | undefined {
    return this.items.get(name);
  }

  set(name: string, tensor: Tensor): this {
    this.items.set(name, asParameter(tensor));
    return this;
  }
}
