// A tensor: shape, dtype, and a reference to memory. Methods are thin; what they do is in ops/.
//
// Who frees: dispose() or `using`; the end of a scope; backward, for intermediate results; last the collector.
// Memory itself is shared by count (storage.ts), so a view outlives the tensor that it was made from.
import { inspect } from 'node:util';
import { runBackward } from './autograd/backward.ts';
import { Leaf } from './autograd/leaf.ts';
import type { Node } from './autograd/node.ts';
import { track } from './context.ts';
import {
  badBoundGrad,
  disposed,
  gradientShape,
  noGraph,
  notALeaf,
  notOneElement,
  notScalarLoss,
  onlyFloatGrad,
  unsafeInteger,
} from './errors.ts';
import { formatTensor } from './format.ts';
import type { DType, HostArray, Memory } from './kernels.ts';
import * as ops from './ops/index.ts';
import { type BufferView, bufferSymbol, bufferView } from './protocol.ts';
import { countOf, type Shape, sameShape } from './shape.ts';
import { allocate, hostView, type Storage } from './storage.ts';

export type NestedNumbers = number | NestedNumbers[];
export type Operand = Tensor | number;
type Dims = number | readonly number[];

export interface ZeroGradOptions {
  /** Default true. */
  readonly setToNull?: boolean;
}

export class Tensor {
  readonly shape: Shape;
  readonly dtype: DType;
  /** Elements. */
  readonly count: number;
  /** Internal: set by keep(). */
  isKept = false;
  /** Internal: where the gradient goes; null when none is needed. */
  target: Node | Leaf | null = null;
  #storage: Storage | null;
  #grad: Tensor | null = null;

  /** Internal: takes over one reference of `storage`. Tensors are made by tensor(), zeros() and operations. */
  constructor(storage: Storage, shape: Shape) {
    this.#storage = storage;
    this.shape = shape;
    this.dtype = storage.memory.dtype;
    this.count = storage.memory.count;
  }

  /** Internal: throws after dispose. */
  get storage(): Storage {
    if (this.#storage === null) throw disposed(this.shape);
    return this.#storage;
  }

  /** Internal: throws after dispose. */
  get memory(): Memory {
    return this.storage.memory;
  }

  get rank(): number {
    return this.shape.length;
  }

  get isDisposed(): boolean {
    return this.#storage === null;
  }

  /** Gives the memory back, and the gradient. Does nothing the second time. A graph that uses the tensor lives on. */
  dispose(): void {
    const storage = this.#storage;
    if (storage === null) return;
    this.#storage = null;
    storage.release();
    if (this.target instanceof Leaf) this.#dropGrad(this.target);
    else this.target?.outputDisposed();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** The only element, as a number. */
  item(): number {
    if (this.count !== 1) throw notOneElement('item', this.shape);
    return toNumber(this.memory.host[0]!);
  }

  /** The tensor's own memory; writes are seen by it. Not to be used after dispose, or after a backward that frees it. */
  dataSync(): HostArray {
    return hostView(this.storage);
  }

  /** As dataSync, once all computation of the tensor has ended. */
  async data(): Promise<HostArray> {
    return this.dataSync();
  }

  /** A copy as nested arrays; a number for shape []. */
  toArray(): NestedNumbers {
    const { host } = this.memory;
    let at = 0;
    const nest = (dim: number): NestedNumbers => {
      if (dim === this.shape.length) return toNumber(host[at++]!);
      return Array.from({ length: this.shape[dim]! }, () => nest(dim + 1));
    };
    return nest(0);
  }

  toString(): string {
    if (this.isDisposed) return `tensor(disposed, shape=[${this.shape.join(', ')}])`;
    return formatTensor(this);
  }

  [inspect.custom](): string {
    return this.toString();
  }

  /** The buffer protocol: the tensor can be handed to anything that takes it, such as a collective. */
  [bufferSymbol](): BufferView {
    return bufferView(this.dtype, this.dataSync());
  }

  get requiresGrad(): boolean {
    return this.target !== null;
  }

  /** May be set on tensors that no recorded operation made. false drops the gradient and its listeners. */
  set requiresGrad(value: boolean) {
    if (value === this.requiresGrad) return;
    if (this.target !== null && !this.target.isLeaf) throw notALeaf('requiresGrad');
    if (value && this.dtype !== 'float32') throw onlyFloatGrad(this.dtype);
    if (this.target instanceof Leaf) this.#dropGrad(this.target);
    this.target = value ? new Leaf(this.count) : null;
  }

  /** True for tensors that no recorded operation made: parameters and data. */
  get isLeaf(): boolean {
    return this.target?.isLeaf !== false;
  }

  /** The accumulated gradient, or null. It shares memory with what backward writes to. */
  get grad(): Tensor | null {
    const leaf = this.target;
    if (!(leaf instanceof Leaf) || leaf.grad === null) return null;
    if (this.#grad === null || this.#grad.isDisposed || this.#grad.storage !== leaf.grad) {
      this.#grad = new Tensor(leaf.grad.retain(), this.shape);
    }
    return this.#grad;
  }

  /**
   * Computes the gradient of this tensor for every leaf that it depends on, and adds it to theirs. `gradient` is the
   * gradient of this tensor itself, 1 if it has one element. Frees the graph and its intermediate tensors (not this
   * one, not those marked by keep) unless `retainGraph` is set.
   */
  backward(gradient?: Tensor | null, options: { readonly retainGraph?: boolean } = {}): void {
    if (this.target === null) throw noGraph();
    if (gradient) {
      if (!sameShape(gradient.shape, this.shape)) throw gradientShape(gradient.shape, this.shape);
      if (gradient.dtype !== 'float32') throw onlyFloatGrad(gradient.dtype);
    } else if (this.count !== 1) {
      throw notScalarLoss(this.shape);
    }
    runBackward(this.target, gradient?.storage ?? null, options.retainGraph ?? false);
  }

  /** Drops the gradient, or fills it with zero if setToNull is false. A bound gradient is always filled. */
  zeroGrad(options: ZeroGradOptions = {}): void {
    const leaf = this.#leaf('zeroGrad');
    if (leaf.isBound || options.setToNull === false) leaf.zero();
    else this.#dropGrad(leaf);
  }

  /**
   * Calls `ready` once per backward, when this gradient is final; backward goes on afterwards, so the tensor itself
   * must not be changed yet. An error in `ready` leaves backward. Returns a function that unsubscribes.
   */
  onGradReady(ready: () => void): () => void {
    return this.#leaf('onGradReady').onReady(ready);
  }

  /**
   * Makes the gradient live in `array` from now on, with the value that it has, or zero. Backward writes into it,
   * zeroGrad fills it. The caller owns the array and may read and change it between backwards.
   */
  bindGrad(array: Float32Array): void {
    const leaf = this.#leaf('bindGrad');
    if (!(array instanceof Float32Array) || array.length !== this.count)
      throw badBoundGrad(this.count, array);
    leaf.bind(array);
    this.#forgetGrad();
  }

  #leaf(what: string): Leaf {
    if (this.target instanceof Leaf) return this.target;
    throw notALeaf(what);
  }

  #dropGrad(leaf: Leaf): void {
    leaf.drop();
    this.#forgetGrad();
  }

  #forgetGrad(): void {
    if (this.#grad?.isKept === false) this.#grad.dispose();
    this.#grad = null;
  }

  /** The same memory without a graph. */
  detach(): Tensor {
    return view(this, this.shape);
  }

  add(other: Operand): Tensor {
    return ops.add(this, other);
  }
  sub(other: Operand): Tensor {
    return ops.sub(this, other);
  }
  mul(other: Operand): Tensor {
    return ops.mul(this, other);
  }
  div(other: Operand): Tensor {
    return ops.div(this, other);
  }
  eq(other: Operand): Tensor {
    return ops.eq(this, other);
  }
  lt(other: Operand): Tensor {
    return ops.lt(this, other);
  }
  gt(other: Operand): Tensor {
    return ops.gt(this, other);
  }
  neg(): Tensor {
    return ops.neg(this);
  }
  exp(): Tensor {
    return ops.exp(this);
  }
  log(): Tensor {
    return ops.log(this);
  }
  sqrt(): Tensor {
    return ops.sqrt(this);
  }
  square(): Tensor {
    return ops.square(this);
  }
  abs(): Tensor {
    return ops.abs(this);
  }
  relu(): Tensor {
    return ops.relu(this);
  }
  sigmoid(): Tensor {
    return ops.sigmoid(this);
  }
  tanh(): Tensor {
    return ops.tanh(this);
  }
  matmul(other: Tensor): Tensor {
    return ops.matmul(this, other);
  }
  transpose(dim0: number, dim1: number): Tensor {
    return ops.transpose(this, dim0, dim1);
  }
  t(): Tensor {
    return ops.t(this);
  }
  reshape(shape: Shape): Tensor {
    return ops.reshape(this, shape);
  }
  flatten(startDim = 0, endDim = -1): Tensor {
    return ops.flatten(this, startDim, endDim);
  }
  squeeze(dim?: number): Tensor {
    return ops.squeeze(this, dim);
  }
  unsqueeze(dim: number): Tensor {
    return ops.unsqueeze(this, dim);
  }
  sum(dims?: Dims, keepDim = false): Tensor {
    return ops.sum(this, dims, keepDim);
  }
  mean(dims?: Dims, keepDim = false): Tensor {
    return ops.mean(this, dims, keepDim);
  }
  max(dims?: Dims, keepDim = false): Tensor {
    return ops.max(this, dims, keepDim);
  }
  argmax(dim?: number, keepDim = false): Tensor {
    return ops.argmax(this, dim, keepDim);
  }
  softmax(dim = -1): Tensor {
    return ops.softmax(this, dim);
  }
  logSoftmax(dim = -1): Tensor {
    return ops.logSoftmax(this, dim);
  }
  /** A copy in memory of its own; the gradient passes through. */
  clone(): Tensor {
    return ops.clone(this);
  }
  /** A copy in another dtype, or this tensor if it has it. Floats are cut towards zero. */
  to(dtype: DType): Tensor {
    return ops.to(this, dtype);
  }
}

/** Internal: a tensor that belongs to the scope that is open now. Takes over one reference of `storage`. */
export function created(storage: Storage, shape: Shape): Tensor {
  const tensor = new Tensor(storage, shape);
  track(tensor);
  return tensor;
}

/** Internal: a tensor with memory that nobody has written yet. */
export function empty(dtype: DType, shape: Shape): Tensor {
  return created(allocate(dtype, countOf(shape)), shape);
}

/** Internal: another shape over the same memory. */
export function view(a: Tensor, shape: Shape): Tensor {
  return created(a.storage.retain(), shape);
}

function toNumber(value: number | bigint): number {
  if (typeof value === 'number') return value;
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw unsafeInteger(value);
  return number;
}
