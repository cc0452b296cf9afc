// Makes an optimizer of TensorFlow.js average gradients: those that it computes, while it computes them if the
// variables belong to layers, and those that it is told to apply.
import * as tf from '@tensorflow/tfjs';
import { foreignVariable } from './errors.ts';
import type { Parts } from './model.ts';
import { replaceMethods } from './replace.ts';
import type { Trained } from './variables.ts';
import { watchGradients } from './watch.ts';

interface Named {
  readonly name: string;
  readonly tensor: tf.Tensor;
}

type Gradients = Parameters<tf.Optimizer['applyGradients']>[0];

/** The methods of one optimizer, before they are replaced. */
type Replaced = Pick<tf.Optimizer, 'computeGradients' | 'applyGradients'>;

export class Averaging {
  /** Gives the optimizer its own methods back. */
  readonly undo: () => void;
  readonly #parts: Parts;
  readonly #isAlone: boolean;
  readonly #own: Replaced;
  readonly #indexes: ReadonlyMap<string, number>;
  /** Gradients that are averages already. */
  readonly #averages = new WeakSet<tf.Tensor>();

  /** Replaces the methods of the optimizer. `isAlone`: the group has one rank, so that gradients are averages. */
  constructor(parts: Parts, isAlone: boolean) {
    const { optimizer, trained } = parts;
    this.#parts = parts;
    this.#isAlone = isAlone;
    this.#indexes = new Map(trained.map(({ key }, index) => [key.name, index]));
    this.#own = {
      computeGradients: optimizer.computeGradients.bind(optimizer),
      applyGradients: optimizer.applyGradients.bind(optimizer),
    };
    this.undo = replaceMethods(optimizer, {
      computeGradients: (loss, varList) => this.#compute(loss, varList),
      applyGradients: (gradients) => this.#apply(gradients),
    });
  }

  #compute(loss: () => tf.Scalar, varList?: tf.Variable[]): ReturnType<tf.Optimizer['computeGradients']> {
    const { trained, handles, states } = this.#parts;
    const variables = varList ?? trained.map(({ key }) => key);
    for (const { name } of variables) this.#indexOf('computeGradients', name);
    const delivered = new Set<Trained>();
    const deliver = (index: number, gradient: tf.Tensor) => {
      delivered.add(trained[index]!);
      trained[index]!.deliver(gradient);
    };
    const { value, grads } = watchGradients(handles, deliver, loss, (watched) =>
      this.#own.computeGradients(watched, variables),
    );
    for (const [name, gradient] of Object.entries(grads)) {
      const index = this.#indexOf('computeGradients', name);
      if (!delivered.has(trained[index]!)) deliver(index, gradient);
    }
    for (const state of states) state.load();
    this.#end(delivered);
    for (const state of states) state.store();
    if (this.#isAlone) {
      for (const gradient of Object.values(grads)) this.#averages.add(gradient);
      return { value, grads };
    }
    tf.dispose(grads);
    return { value, grads: this.#collect() };
  }

  #apply(gradients: Gradients): void {
    const named: readonly Named[] = Array.isArray(gradients)
      ? gradients
      : Object.entries(gradients).map(([name, tensor]) => ({ name, tensor }));
    for (const { name } of named) this.#indexOf('applyGradients', name);
    const present = named.filter(({ tensor }) => tensor != null);
    if (present.every(({ tensor }) => this.#averages.has(tensor))) {
      this.#own.applyGradients(gradients);
      return;
    }
    const delivered = new Set<Trained>();
    for (const { name, tensor } of present) {
      const param = this.#parts.trained[this.#indexOf('applyGradients', name)]!;
      delivered.add(param);
      param.deliver(tensor);
    }
    this.#end(delivered);
    if (this.#isAlone) {
      this.#own.applyGradients(gradients);
      return;
    }
    const averages = this.#collect();
    this.#own.applyGradients(
      Array.isArray(gradients) ? named.map(({ name }) => ({ name, tensor: averages[name]! })) : averages,
    );
    tf.dispose(averages);
  }

  /** Clears what has not been delivered, and blocks until ddp() has averaged everything. */
  #end(delivered: ReadonlySet<Trained>): void {
    const { trained } = this.#parts;
    for (const param of trained) if (!delivered.has(param)) param.clear();
    trained[0]!.endBackward();
  }

  #collect(): Record<string, tf.Tensor> {
    const averages: Record<string, tf.Tensor> = {};
    for (const param of this.#parts.trained) {
      const average = param.average();
      if (average === null) continue;
      this.#averages.add(average);
      averages[param.key.name] = average;
    }
    return averages;
  }

  #indexOf(verb: string, name: string): number {
    const index = this.#indexes.get(name);
    if (index === undefined) throw foreignVariable(verb, name);
    return index;
  }
}
