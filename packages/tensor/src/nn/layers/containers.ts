// Containers of modules: Sequential, ModuleList and ModuleDict.

import { foreignMember, notAModule, notModules } from '../../checks/argument-errors.ts';
import { refuseForeign } from '../../checks/foreign-members.ts';
import type { Tensor } from '../../core/tensor.ts';
import type { LinearOptions } from '../../ops/index.ts';
import { type Layer, Module } from '../module.ts';
import { GELU } from './activations.ts';
import { Linear } from './linear.ts';
import { ReLU } from './stateless.ts';

/**
 * Returns the activation that a layer computes, if a Linear before it can compute it in its own kernel. Layers with
 * hooks have a forward of their own and are excluded.
 */
function activationOf(layer: Layer | undefined): LinearOptions['activation'] {
  if (layer instanceof ReLU && layer.forward === ReLU.prototype.forward) return 'relu';
  if (layer instanceof GELU && layer.forward === GELU.prototype.forward)
    return layer.approximate === 'tanh' ? 'geluTanh' : 'gelu';
  return undefined;
}

/** Throws unless a value has a forward. `position` is its position in the arguments. */
function requireLayer(op: string, position: string, value: unknown): void {
  if (typeof (value as Layer | null | undefined)?.forward !== 'function')
    throw notAModule(op, position, value);
}

/** Throws unless a value is a module. `position` is its position in the arguments. */
function requireModule(op: string, position: string, value: unknown): void {
  if (!(value instanceof Module)) throw notAModule(op, position, value);
}

/**
 * Runs layers one after another. A Linear and a ReLU or GELU after it run as one kernel. Parameters are named
 * as in PyTorch: "0.weight".
 */
export class Sequential extends Module {
  /** The layers, in order. */
  readonly layers: readonly Layer[];

  constructor(...layers: readonly Layer[]) {
    super();
    for (const [i, layer] of layers.entries()) requireLayer('Sequential', `layer ${i}`, layer);
    this.layers = layers;
  }

  protected override members(): Iterable<[string, unknown]> {
    return Object.entries(this.layers);
  }

  /** Returns the result of the last layer. */
  forward(input: Tensor): Tensor {
    const { layers } = this;
    let output = input;
    for (let i = 0; i < layers.length; i++) {
      const layer = layers[i]!;
      if (layer instanceof Linear && layer.forward === Linear.prototype.forward) {
        const activation = activationOf(layers[i + 1]);
        output = layer.forward(output, activation);
        if (activation) i++;
      } else {
        output = layer.forward(output);
      }
    }
    return output;
  }

  static {
    const whole = 'all layers in the constructor: new Sequential(...net.layers, layer)';
    const methods = { append: whole, extend: whole, insert: whole, add_module: whole };
    refuseForeign(Sequential.prototype, 'Sequential', foreignMember, { methods });
  }
}

/**
 * A growable list of modules with names "0", "1", …. A plain array in a field also works; its modules are
 * named after the field.
 */
export class ModuleList<M extends Module = Layer> extends Module implements Iterable<M> {
  /** The modules, in order. */
  readonly items: M[];

  constructor(items: Iterable<M> = []) {
    super();
    if (typeof items?.[Symbol.iterator] !== 'function')
      throw notModules('ModuleList', 'a list of modules', items);
    this.items = [];
    this.push(...items);
  }

  protected override members(): Iterable<[string, unknown]> {
    return Object.entries(this.items);
  }

  /** Number of modules. */
  get length(): number {
    return this.items.length;
  }

  [Symbol.iterator](): Iterator<M> {
    return this.items[Symbol.iterator]();
  }

  /** Returns the module at a position; negative positions count from the end. */
  at(index: number): M | undefined {
    return this.items.at(index);
  }

  /** Adds modules at the end. Returns this. */
  push(...items: readonly M[]): this {
    for (const [i, item] of items.entries())
      requireModule('ModuleList', `item ${this.items.length + i}`, item);
    this.items.push(...items);
    return this;
  }

  static {
    const methods = {
      append: 'push(module)',
      extend: 'push(...modules)',
      add_module: 'push(module)',
      insert: 'the array items: list.items.splice(index, 0, module)',
    };
    refuseForeign(ModuleList.prototype, 'ModuleList', foreignMember, { methods });
  }
}

/** Modules by name, in the order in which they were added. */
export class ModuleDict<M extends Module = Layer> extends Module implements Iterable<[string, M]> {
  /** The modules by name. */
  readonly items: Map<string, M>;

  constructor(items: Readonly<Record<string, M>> = {}) {
    super();
    if (typeof items !== 'object' || items === null)
      throw notModules('ModuleDict', 'an object of modules by name', items);
    this.items = new Map();
    for (const [name, module] of Object.entries(items)) this.set(name, module);
  }

  protected override members(): Iterable<[string, unknown]> {
    return this.items;
  }

  [Symbol.iterator](): Iterator<[string, M]> {
    return this.items[Symbol.iterator]();
  }

  /** Returns the module of a name, or undefined. */
  get(name: string): M | undefined {
    return this.items.get(name);
  }

  /** Adds a module, or replaces the one of that name. Returns this. */
  set(name: string, module: M): this {
    requireModule('ModuleDict', `'${name}'`, module);
    this.items.set(name, module);
    return this;
  }

  static {
    const methods = {
      update: 'set(name, module) for each module',
      add_module: 'set(name, module)',
      keys: 'items.keys()',
      values: 'items.values()',
      pop: 'items.delete(name)',
    };
    refuseForeign(ModuleDict.prototype, 'ModuleDict', foreignMember, { methods });
  }
}
