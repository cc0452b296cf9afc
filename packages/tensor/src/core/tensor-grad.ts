// The gradient of a tensor: whether it requires one, backward, hooks and listeners, and gradient memory that the caller
// provides.
import { runBackward } from '../autograd/backward.ts';
import { Leaf } from '../autograd/leaf.ts';
import { kernels } from '../backends/index.ts';
import type { Strided } from '../backends/operands.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { checkValue, flag, tensorOrNull } from '../checks/value-checks.ts';
import type { Device } from '../device/device.ts';
import {
  badBoundGrad,
  boundGrad,
  differentDevices,
  disposed,
  gradDtype,
  gradientShape,
  hookGradient,
  needsGraph,
  noGraph,
  notALeaf,
  notOnHost,
  notScalarLoss,
  onlyFloatGrad,
  shown,
} from '../errors.ts';
import { noGrad, track } from './context.ts';
import { type DType, dtypeInfo, type HostArray, isFloat } from './dtype.ts';
import { adopt, adoptMemory, type Storage } from './memory/storage.ts';
import { transferred } from './memory/transfer.ts';
import type { DeviceHandle, GradMemory } from './protocol.ts';
import { type Shape, sameShape } from './shape.ts';
import { TensorCore } from './tensor-core.ts';

/** The listeners and hooks of tensors that require no gradient at the moment. */
const frozenLeaves = new WeakMap<object, Leaf>();

export interface ZeroGradOptions {
  /** Whether to drop the gradient instead of filling it with zeros. Default true. */
  readonly setToNull?: boolean;
}

export const zeroGradOptions = optionChecks<ZeroGradOptions>({ setToNull: flag });

export interface BackwardOptions {
  /** Keeps the graph for another backward. Default false. */
  readonly retainGraph?: boolean;
}

const gradientCheck = { ...tensorOrNull, expected: 'a tensor or null (options come second)' };
const backwardOptions = optionChecks<BackwardOptions>({ retainGraph: flag });

/** `Self` is the class that extends this one: gradients are tensors of it. */
export abstract class GradTensor<Self extends GradTensor<Self>> extends TensorCore {
  declare private shownGrad: Self | null;
  /** The gradient of a tensor that an operation made, once retainGrad was called. */
  declare private retained: Leaf | null;

  constructor(storage: Storage, shape: Shape, strided: Strided = storage?.dense) {
    super(storage, shape, strided);
    this.shownGrad = null;
    this.retained = null;
  }

  /**
   * Returns a tensor of this shape over other memory that no scope tracks. Takes ownership of one reference of
   * `storage`.
   */
  protected abstract over(storage: Storage): Self;

  get requiresGrad(): boolean {
    return this.target !== null;
  }

  /**
   * May be set on tensors that no recorded operation made. false drops the gradient; its listeners and hooks wait until
   * the tensor requires one again.
   */
  set requiresGrad(value: boolean) {
    checkValue('requiresGrad', value, flag);
    if (value === this.requiresGrad) return;
    if (this.target !== null && !this.target.isLeaf) throw notALeaf('requiresGrad');
    if (value && !isFloat(this.dtype)) throw onlyFloatGrad(this.dtype);
    if (this.target instanceof Leaf) {
      this.dropGrad(this.target);
      frozenLeaves.set(this, this.target);
      this.target = null;
    } else {
      const leaf = frozenLeaves.get(this);
      frozenLeaves.delete(this);
      leaf?.drop(); // a gradient from a graph that was recorded before
      this.target = leaf ?? new Leaf(this.dtype, this.count, this.device);
    }
  }

  /** True for tensors that no recorded operation made: parameters and data. */
  get isLeaf(): boolean {
    return this.target?.isLeaf !== false;
  }

  /** The accumulated gradient, or null. It shares the memory that backward writes to. */
  get grad(): Self | null {
    const leaf = this.target instanceof Leaf ? this.target : this.retained;
    if (leaf === null || leaf.grad === null) return null;
    leaf.settle();
    if (this.shownGrad === null || this.shownGrad.isDisposed || this.shownGrad.storage !== leaf.grad) {
      this.shownGrad = this.over(leaf.grad.retain());
    }
    return this.shownGrad;
  }

  /**
   * Computes the gradient of every leaf that this tensor depends on, and adds it to the `grad` of the leaf. `gradient`
   * is the gradient of this tensor itself; default 1, if it has one element. Frees the graph and its intermediate
   * tensors (not this one, not those marked by keep) unless `retainGraph` is set.
   */
  backward(gradient?: Self | null, options: BackwardOptions = {}): void {
    checkOptions('backward', options, backwardOptions);
    if (this.target === null) throw noGraph();
    if (gradient) {
      checkValue('backward: gradient', gradient, gradientCheck);
      if (!sameShape(gradient.shape, this.shape)) throw gradientShape(gradient.shape, this.shape);
      if (gradient.dtype !== this.dtype) throw gradDtype(gradient.dtype, this.dtype);
      if (gradient.device !== this.device) throw differentDevices('backward', this.device, gradient.device);
    } else if (this.count !== 1) {
      throw notScalarLoss(this.shape);
    }
    const own = gradient ? denseStorage(gradient) : null;
    try {
      runBackward([{ target: this.target, gradient: own }], options.retainGraph ?? false);
    } finally {
      own?.release();
    }
  }

  /**
   * Calls `hook` in every backward with the gradient of this tensor, complete for that backward, before it is sent to
   * the inputs or added to `grad`. If `hook` returns a tensor, it replaces the gradient; `hook` must not write into its
   * argument. Returns a function that removes the hook.
   */
  registerHook(hook: (grad: Self) => Self | undefined): () => void {
    if (this.target === null) throw needsGraph('registerHook');
    return this.target.addHook((grad) => {
      const tensor = this.over(grad.retain());
      track(tensor);
      const other = noGrad(() => hook(tensor));
      return other ? checkedGradient('registerHook', other, this) : null;
    });
  }

  /**
   * Keeps the gradient of a tensor that an operation made: backward adds it to `grad`, as the hooks of the tensor leave
   * it. Neither backward nor a scope disposes the tensor any more.
   */
  retainGrad(): void {
    if (this.target === null) throw needsGraph('retainGrad');
    if (this.target.isLeaf || this.retained !== null) return;
    const retained = new Leaf(this.dtype, this.count, this.device);
    this.retained = retained;
    this.isKept = true;
    this.target.setLastHook((grad) => {
      retained.share(grad);
      return null;
    });
  }

  /**
   * Drops the gradient, or fills it with zeros if setToNull is false. A bound gradient stays in its memory: with
   * setToNull, the memory keeps the old values until `grad` is read, which then returns zeros, or until backward
   * overwrites them.
   */
  zeroGrad(options: ZeroGradOptions = {}): void {
    checkOptions('zeroGrad', options, zeroGradOptions);
    const leaf = this.#leaf('zeroGrad');
    const isFilled = options.setToNull === false;
    if (leaf.isBound || isFilled) leaf.empty();
    else this.dropGrad(leaf);
    if (isFilled) leaf.settle();
    leaf.isZeroed = isFilled && leaf.grad !== null;
  }

  /** Whether the last zeroGrad filled the gradient with zeros, instead of dropping it. @internal */
  get isGradZeroed(): boolean {
    return this.target instanceof Leaf && this.target.isZeroed;
  }

  /**
   * Calls `ready` once per backward that reaches this tensor, when its gradient is final. Backward continues
   * afterwards, so `ready` must not change the tensor itself. backward throws the errors of `ready`. Returns a function
   * that unsubscribes.
   */
  onGradReady(ready: () => void): () => void {
    return this.#leaf('onGradReady').onReady(ready);
  }

  /** Does the same as onGradReady, also for a tensor that does not require a gradient yet. @internal */
  onTrained(ready: () => void): () => void {
    if (this.target !== null) return this.#leaf('onGradReady').onReady(ready);
    const leaf = frozenLeaves.get(this) ?? new Leaf(this.dtype, this.count, this.device);
    frozenLeaves.set(this, leaf);
    return leaf.onReady(ready);
  }

  /**
   * Moves the gradient, or zeros if there is none, into memory of the caller: an array, or on a CUDA device a view with
   * a handle, with the dtype and the number of elements of the tensor. From now on backward writes there, and zeroGrad
   * leaves the gradient there. The caller may read and change it between backwards.
   */
  bindGrad(memory: HostArray | GradMemory): void {
    const leaf = this.#leaf('bindGrad');
    leaf.bind(ArrayBuffer.isView(memory) ? this.#boundArray(memory) : this.#boundHandle(memory));
    this.#forgetGrad();
  }

  #boundArray(array: HostArray): Storage {
    const isFitting = array instanceof dtypeInfo[this.dtype].array && array.length === this.count;
    if (!isFitting) throw badBoundGrad(this.count, this.dtype, array);
    if (this.device !== 'cpu') throw notOnHost('bindGrad', this.device);
    return adopt(this.dtype, array);
  }

  #boundHandle(memory: GradMemory): Storage {
    const { dtype, count, device, handle } = memory ?? {};
    const address = (handle as Partial<DeviceHandle> | null | undefined)?.address;
    const isFitting = dtype === this.dtype && count === this.count && typeof address === 'bigint';
    if (!isFitting) throw badBoundGrad(this.count, this.dtype, memory);
    const index = device?.index ?? -1;
    const where = `${device?.kind}:${index}`;
    if (where !== this.device) throw differentDevices('bindGrad', this.device, where);
    const place = { dtype: this.dtype, count, device: this.device, address };
    return adoptMemory(kernels().borrow({ ...place, owner: handle!, release: null, stream: null }));
  }

  /** Throws if the tensor cannot be converted. @internal */
  checkConvertible(dtype: DType, device: Device): void {
    if (dtype !== this.dtype || device !== this.device) this.#convertible();
  }

  /** Returns the leaf of a tensor that can be converted, or null. */
  #convertible(): Leaf | null {
    if (this.isDisposed) throw disposed(this.shape);
    const leaf = this.target === null ? (frozenLeaves.get(this) ?? null) : this.#leaf('convert');
    if (leaf?.isBound) throw boundGrad();
    return leaf;
  }

  /** Changes the floating dtype or device of this tensor, and of its gradient, in place. @internal */
  convert(dtype: DType, device: Device = this.device): void {
    if (dtype === this.dtype && device === this.device) return;
    const leaf = this.#convertible();
    this.moveTo(transferred(this.strided, this.shape, dtype, device));
    leaf?.convert(dtype, device);
    this.#forgetGrad();
  }

  /** Drops the gradient, also a bound one: the next backward allocates memory for it. */
  unbindGrad(): void {
    this.dropGrad(this.#leaf('unbindGrad'));
  }

  #leaf(what: string): Leaf {
    if (this.target instanceof Leaf) return this.target;
    throw notALeaf(what);
  }

  protected override dropGrad(leaf: Leaf): void {
    leaf.drop();
    this.#forgetGrad();
  }

  override dispose(): void {
    if (this.retained !== null && !this.isDisposed) this.dropGrad(this.retained);
    super.dispose();
  }

  #forgetGrad(): void {
    if (this.shownGrad?.isKept === false) this.shownGrad.dispose();
    this.shownGrad = null;
  }
}

/** Returns a user's gradient as dense memory, with one reference. Throws unless it fits `tensor`. */
export function checkedGradient(what: string, gradient: TensorCore, tensor: Typed): Storage {
  const show = ({ dtype, shape }: Typed): string => `${dtype} [${shape.join(', ')}]`;
  if (!(gradient instanceof TensorCore)) throw hookGradient(what, shown(gradient), show(tensor));
  const fits = sameShape(gradient.shape, tensor.shape) && gradient.dtype === tensor.dtype;
  if (!fits) throw hookGradient(what, show(gradient), show(tensor));
  if (gradient.device !== tensor.device) throw differentDevices(what, tensor.device, gradient.device);
  return denseStorage(gradient);
}

interface Typed {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly device: Device;
}

/** Returns memory that holds exactly the tensor's elements, in row-major order: its own, or a copy. One reference. */
export function denseStorage(tensor: TensorCore): Storage {
  const { storage, strided, count } = tensor;
  if (strided === storage.dense && storage.memory.count === count) return storage.retain();
  return transferred(strided, tensor.shape, tensor.dtype, tensor.device);
}
