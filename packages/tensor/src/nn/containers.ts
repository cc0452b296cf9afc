// Modules in a row, in a list, by name.
import type { Tensor } from '../tensor.ts';
import { type Layer, Module } from './module.ts';

/** Runs layers one after the other. Parameters are named as in PyTorch: "0.weight". */
export class Sequential extends Module {
  readonly layers: readonly Layer[];

  constructor(...layers: readonly Layer[]) {
    super();
    this.layers = layers;
  }

  protected override members(): Iterable<[string, unknown]> {
    return Object.entries(this.layers);
  }

  forward(input: Tensor): Tensor {
    let output = input;
    for (const layer of this.layers) output = layer.forward(output);
    return output;
  }
}

/** A list of modules that can grow; named "0", "1", …. A plain array in a field does the same under its own name. */
export class ModuleList<M extends Module = Layer> extends Module implements Iterable<M> {
  readonly items: M[];

  constructor(items: Iterable<M> = []) {
    super();
    this.items = [...items];
  }

  protected override members(): Iterable<[string, unknown]> {
    return Object.entries(this.items);
  }

  get length(): number {
    return this.items.length;
  }

  [Symbol.iterator](): Iterator<M> {
    return this.items[Symbol.iterator]();
  }

  /** The module at a position; negative ones count from the end. */
  at(index: number): M | undefined {
    return this.items.at(index);
  }

  push(...items: readonly M[]): this {
    this.items.push(...items);
    return this;
  }
}

/** Modules by name, in the order in which they were added. */
export class ModuleDict<M extends Module = Layer> extends Module implements Iterable<[string, M]> {
  readonly items: Map<string, M>;

  constructor(items: Readonly<Record<string, M>> = {}) {
    super();
    this.items = new Map(Object.entries(items));
  }

  protected override members(): Iterable<[string, unknown]> {
    return this.items;
  }

  [Symbol.iterator](): Iterator<[string, M]> {
    return this.items[Symbol.iterator]();
  }

  get(name: string): M | undefined {
    return this.items.get(name);
  }

  set(name: string, module: M): this {
    this.items.set(name, module);
    return this;
  }
}
