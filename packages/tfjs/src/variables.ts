// Variables of TensorFlow.js as ddp() sees them. TensorFlow.js may keep their values anywhere and moves them at every
// assignment, so ddp() works on copies in memory of our own.
import type { BufferView, DType } from '@ringwise/collectives';
import type { FrozenParam, GradParam } from '@ringwise/ddp';
import * as tf from '@tensorflow/tfjs';
import { notTrainable, unknownType } from './errors.ts';

/** What tf.tensor() takes: 0 and 1 in a Uint8Array stand for bool. */
type Values = Float32Array | Int32Array | Uint8Array;

const dtypes: Readonly<Record<string, DType>> = { float32: 'float32', int32: 'int32', bool: 'uint8' };

function viewOf(host: Values, dtype: DType): BufferView {
  return { dtype, count: host.length, device: { kind: 'cpu', index: 0 }, host, handle: null };
}

/** A variable that does not train, with a copy of its value in memory that the group can read and write. */
export class Copied implements FrozenParam {
  readonly name: string;
  readonly key: tf.Variable;
  readonly shape: readonly number[];
  readonly #dtype: DType;
  #copy: Values | null = null;

  /** `name` must be equal on all ranks. Names of variables are not, because a process counts its layers. */
  constructor(name: string, variable: tf.Variable) {
    const dtype = dtypes[variable.dtype];
    if (dtype === undefined) throw unknownType(name, variable.dtype);
    this.name = name;
    this.key = variable;
    this.shape = variable.shape;
    this.#dtype = dtype;
  }

  /** The copy, which is made when it is needed first. */
  get value(): BufferView {
    if (this.#copy === null) this.load();
    return viewOf(this.#copy!, this.#dtype);
  }

  /** Copies the variable's value. */
  load(): void {
    const now = this.key.dataSync() as Values;
    if (this.#copy === null) this.#copy = now.slice();
    else this.#copy.set(now);
  }

  /** Assigns the copy to the variable. */
  store(): void {
    if (this.#copy === null) return;
    // A slice, because the CPU backend of TensorFlow.js keeps the array that it is given.
    const { shape, dtype } = this.key;
    tf.tidy(() => this.key.assign(tf.tensor(this.#copy!.slice(), shape, dtype)));
  }

  /** Frees the copy. */
  drop(): void {
    this.#copy = null;
  }
}

/** A variable that trains. Its gradient lies in a bucket of ddp(). */
export class Trained extends Copied implements GradParam {
  #memory: Float32Array | null = null;
  #isDropped = false;
  #ready: (() => void) | null = null;
  #end: (() => void) | null = null;

  constructor(name: string, variable: tf.Variable) {
    super(name, variable);
    if (variable.dtype !== 'float32') throw notTrainable(name, variable.dtype);
  }

  get grad(): BufferView | null {
    return this.#memory === null || this.#isDropped ? null : viewOf(this.#memory, 'float32');
  }

  /** Puts a local gradient into the bucket and tells ddp(), which may start to average the bucket. */
  deliver(gradient: tf.Tensor): void {
    this.#isDropped = false;
    this.#memory?.set(gradient.dataSync());
    this.#ready?.();
  }

  /** Clears the gradient of a variable that the loss did not use. */
  clear(): void {
    this.#isDropped = false;
    this.#memory?.fill(0);
  }

  /** Returns the average as a new tensor; null if no rank has a gradient, or in a group of one. */
  average(): tf.Tensor | null {
    if (this.#memory === null || this.#isDropped) return null;
    return tf.tensor(this.#memory.slice(), this.key.shape);
  }

  /** Tells ddp() that a backward has ended. Blocks until all gradients are averaged. */
  endBackward(): void {
    this.#end?.();
  }

  onGradReady(ready: () => void): () => void {
    this.#ready = ready;
    return () => {
      this.#ready = null;
    };
  }

  onBackwardEnd(done: () => void): () => void {
    this.#end = done;
    return () => {
      this.#end = null;
    };
  }

  bindGrad(bucket: BufferView): void {
    const next = bucket.host as Float32Array;
    if (this.#memory !== null && !this.#isDropped) next.set(this.#memory);
    else next.fill(0);
    this.#memory = next;
    this.#isDropped = false;
  }

  dropGrad(): void {
    this.#isDropped = true;
  }
}
