// The base of a tensor: memory, and the layout of its elements there. Views share memory by counting references
// (storage.ts), so a view outlives the tensor that it was made from.
//
// A tensor is disposed by dispose() or `using`, by the end of its scope, or, as an intermediate result, by backward.
// Memory of other tensors is freed after they have been garbage-collected.
import { inspect } from 'node:util';
import { Leaf } from '../autograd/leaf.ts';
import type { Node } from '../autograd/node.ts';
import { deviceControl, kernels } from '../backends/index.ts';
import type { Memory, Strided } from '../backends/operands.ts';
import { notConstructed } from '../checks/argument-errors.ts';
import { capturing, refuseWhileCapturing } from '../device/capture.ts';
import { cudaIndex, type Device } from '../device/device.ts';
import {
  disposed,
  leafIsReadOnly,
  notDense,
  notOneElement,
  resultIsReadOnly,
  unsafeInteger,
} from '../errors.ts';
import { chosenStreams, isGradEnabled } from './context.ts';
import { type DType, dtypeInfo, type HostArray } from './dtype.ts';
import { reader, type Value } from './element.ts';
import { formatTensor } from './format.ts';
import { checkListed, hostArray } from './host-numbers.ts';
import type { Layout } from './layout.ts';
import { adopt, allocate, hostView, isPinned, type Storage } from './memory/storage.ts';
import { type BufferView, bufferSymbol, bufferView, deviceBufferView } from './protocol.ts';
import { countOf, type Shape, stridesOf } from './shape.ts';

/** The values of a tensor as numbers in arrays, one level of arrays for each dimension. */
export type NestedNumbers = number | NestedNumbers[];

export abstract class TensorCore {
  // Fields are declared and then set by the constructor: in a class that others extend, V8 defines them in a
  // function of their own, which takes longer than everything else that makes a tensor.
  /** Sizes of the dimensions. */
  declare readonly shape: Shape;
  /** Type of the elements. */
  declare readonly dtype: DType;
  /** Number of elements. */
  declare readonly count: number;
  /** Set by keep(). @internal */
  declare isKept: boolean;
  /** The target of the gradient; null if none is needed. @internal */
  declare target: Node | Leaf | null;
  /** Null once disposed. */
  declare private held: Storage | null;
  declare private place: Strided;

  /**
   * Takes ownership of one reference of `storage`. `strided` is the location of the elements in it; its strides are
   * null if they are dense. @internal
   */
  constructor(storage: Storage, shape: Shape, strided: Strided = storage?.dense) {
    const memory = storage?.memory;
    if (memory === undefined) throw notConstructed();
    this.held = storage;
    this.place = strided;
    this.shape = shape;
    this.dtype = memory.dtype;
    this.count = countOf(shape);
    this.isKept = false;
    this.target = null;
  }

  /** Throws after dispose. @internal */
  get storage(): Storage {
    if (this.held === null) throw disposed(this.shape);
    return this.held;
  }

  /** The elements as kernels take them. Throws after dispose. @internal */
  get strided(): Strided {
    if (this.held === null) throw disposed(this.shape);
    return this.place;
  }

  /** Throws after dispose. @internal */
  get memory(): Memory {
    return this.storage.memory;
  }

  /** Throws after dispose. @internal */
  get layout(): Layout {
    const { offset } = this.strided;
    return { shape: this.shape, strides: this.strides, offset };
  }

  /** The device of the elements. Throws after dispose. */
  get device(): Device {
    return this.storage.memory.device;
  }

  /** Number of dimensions. */
  get rank(): number {
    return this.shape.length;
  }

  /** Elements from one index to the next, by dimension. */
  get strides(): readonly number[] {
    return this.place.strides ?? stridesOf(this.shape);
  }

  /** Index of the first element in the memory, in elements. */
  get offset(): number {
    return this.place.offset;
  }

  /** Whether the elements are adjacent in memory, in row-major order. */
  get isContiguous(): boolean {
    return this.place.strides === null;
  }

  /** Whether the elements are in pinned host memory, which CUDA devices access directly. */
  get isPinned(): boolean {
    return isPinned(this.memory);
  }

  /** Whether the tensor has been disposed. Most of its other members throw then. */
  get isDisposed(): boolean {
    return this.held === null;
  }

  /** Releases the memory and the gradient. Idempotent. A graph that uses the tensor stays valid. */
  dispose(): void {
    const storage = this.held;
    if (storage === null) return;
    this.held = null;
    storage.release();
    if (this.target instanceof Leaf) this.dropGrad(this.target);
    else this.target?.unreferenced();
  }

  /** Moves the tensor to other memory, dense and of any dtype. Takes ownership of one reference of `storage`. */
  protected moveTo(storage: Storage): void {
    const before = this.storage;
    this.held = storage;
    this.place = storage.dense;
    (this as { dtype: DType }).dtype = storage.memory.dtype;
    // A graph that saved the value cannot be run any more.
    before.version++;
    before.release();
  }

  protected abstract dropGrad(leaf: Leaf): void;

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Returns the only element as a number. Throws for an int64 that a number does not hold exactly. */
  item(): number {
    if (this.count !== 1) throw notOneElement('item', this.shape);
    const { memory } = this;
    if (memory.device === 'cpu') return toNumber('item', reader(memory)(this.offset));
    refuseWhileCapturing('item()');
    const host = new dtypeInfo[this.dtype].array(1);
    kernels().read(memory, this.offset, host);
    return toNumber('item', reader({ dtype: this.dtype, host })(0));
  }

  /**
   * Returns the elements as a typed array: the tensor's own memory, so that writes change the tensor, or a copy if it
   * is not contiguous or not in host memory. float16 and bfloat16 are bit patterns. The tensor's own memory must not be
   * used after dispose, or after a backward or a scope that disposes the tensor. Blocks until a device has computed the
   * elements.
   */
  dataSync(): HostArray {
    const { storage } = this;
    if (this.isContiguous && this.device === 'cpu') return hostView(storage, this.offset, this.count);
    refuseWhileCapturing('dataSync()');
    const array = hostArray(this.dtype, this.count);
    if (this.device !== 'cpu') {
      const dense = contiguousStorage(this);
      kernels().read(dense.memory, dense === storage ? this.offset : 0, array);
      dense.release();
      return array;
    }
    const copy = adopt(this.dtype, array);
    kernels().copy(this.shape, copy.dense, this.strided);
    copy.release();
    return array;
  }

  /** Resolves with the same array as dataSync(), once all computation of the tensor has ended. */
  async data(): Promise<HostArray> {
    if (this.device === 'cpu') return this.dataSync();
    refuseWhileCapturing('data()');
    const array = hostArray(this.dtype, this.count);
    const dense = contiguousStorage(this);
    const read = kernels().readAsync(dense.memory, dense === this.storage ? this.offset : 0, array);
    dense.release();
    await read;
    return array;
  }

  /**
   * Returns a copy as nested arrays of numbers; one number for shape []. bool is returned as 1 and 0. Throws as item()
   * does.
   */
  toArray(): NestedNumbers {
    refuseWhileCapturing('toArray()');
    if (this.count > 0) for (const size of this.shape) checkListed(size, 2 ** 27 - 1);
    const read = reader(this.memory);
    const { strides } = this;
    const nest = (dim: number, at: number): NestedNumbers => {
      if (dim === this.shape.length) return toNumber('toArray', read(at));
      return Array.from({ length: this.shape[dim]! }, (_, i) => nest(dim + 1, at + i * strides[dim]!));
    };
    return nest(0, this.offset);
  }

  /** Returns toArray(), which JSON.stringify() writes then. */
  toJSON(): NestedNumbers {
    return this.toArray();
  }

  /** Returns the text that console.log() shows. */
  toString(): string {
    if (this.isDisposed) return `tensor(disposed, shape=[${this.shape.join(', ')}])`;
    return formatTensor(this);
  }

  [inspect.custom](): string {
    return this.toString();
  }

  /**
   * Implements the buffer protocol (protocol.ts), by which collectives take tensors. Throws unless the tensor is
   * contiguous. A writer calls `written`, so that backward notices the change. The view is read-only if the tensor
   * requires a gradient and operations are recorded.
   */
  [bufferSymbol](): BufferView {
    if (this.target === null || !isGradEnabled()) return memoryView(this);
    return memoryView(this, this.target.isLeaf ? leafIsReadOnly : resultIsReadOnly);
  }
}

/** Returns the memory of a contiguous tensor; others may write it unless `readOnly` is given. @internal */
export function memoryView(tensor: TensorCore, readOnly?: BufferView['readOnly']): BufferView {
  const { dtype, count, device, storage } = tensor;
  if (!tensor.isContiguous) throw notDense(tensor.shape);
  const written = (): void => void storage.version++;
  if (device === 'cpu') return bufferView(dtype, tensor.dataSync(), { readOnly, written });
  const handle = { address: addressOf(tensor), owner: storage, stream: streamOf(device) };
  return deviceBufferView(dtype, count, cudaIndex(device), handle, { readOnly, written });
}

/** Returns the address of the first element. @internal */
export const addressOf = ({ memory, offset, dtype }: TensorCore): bigint =>
  kernels().address(memory) + BigInt(offset * dtypeInfo[dtype].bytes);

/** Returns the CUstream that work of a CUDA device goes to now. @internal */
export function streamOf(device: Device): bigint {
  const capture = capturing();
  if (capture?.device === device) return capture.shared.stream;
  const index = cudaIndex(device);
  return deviceControl().streamAddress(index, chosenStreams()?.[index] ?? 0);
}

/** Returns the memory of a contiguous tensor, in which it begins at its offset, or a dense copy. One reference. */
function contiguousStorage(tensor: TensorCore): Storage {
  if (tensor.isContiguous) return tensor.storage.retain();
  const copy = allocate(tensor.dtype, tensor.count, tensor.device);
  kernels().copy(tensor.shape, copy.dense, tensor.strided);
  return copy;
}

function toNumber(method: string, value: Value): number {
  if (typeof value === 'number') return value;
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw unsafeInteger(method, value);
  return number;
}
