// The target that collects the gradient of one tensor during backward: dense, in the tensor's shape and dtype,
// independent of the strides of the tensor. Contributions arrive one by one, from each use of the tensor: the first is
// written, the others are added.
//
// An op's gradient reports each contribution in one of three ways:
//
// - open() … close(): the kernel writes or adds (see isFilled) in the gradient's own memory;
// - begin() … end(s): the kernel cannot add, so it writes to s, which is the gradient's memory or a temporary;
// - share(s): the contribution already exists, in memory that other targets may hold too.
import { kernels } from '../backends/index.ts';
import type { Strided } from '../backends/operands.ts';
import type { DType } from '../core/dtype.ts';
import { allocate, type Storage } from '../core/memory/storage.ts';
import type { Device } from '../device/device.ts';

/** Receives a complete gradient. May return another one to replace it: dense, of the same dtype, with one reference. */
export type GradHook = (grad: Storage) => Storage | null;

/** Key of the hook that runs behind the others, whenever they are added. */
const lastKey = {};

export abstract class GradTarget {
  // Declared and then set, as in TensorCore.
  /** Whether the gradient stays after backward. */
  abstract readonly isLeaf: boolean;
  /** Changes only where a module is converted. */
  declare dtype: DType;
  /** Elements of the tensor and of its gradient. */
  declare readonly count: number;
  /** Changes only where a module is moved. */
  declare device: Device;
  declare grad: Storage | null;
  /** False: the next contribution overwrites the contents of `grad`. */
  declare isFilled: boolean;
  /** Number of the Pass that visited this target last. */
  declare visit: number;
  declare private hooks: Map<object, GradHook> | null;

  constructor(dtype: DType, count: number, device: Device) {
    this.dtype = dtype;
    this.count = count;
    this.device = device;
    this.grad = null;
    this.isFilled = false;
    this.visit = 0;
    this.hooks = null;
  }

  get hasHooks(): boolean {
    return this.hooks !== null && this.hooks.size > 0;
  }

  /** Adds a hook. Hooks run in the order in which they were added. Returns a function that removes the hook. */
  addHook(hook: GradHook): () => void {
    this.hooks ??= new Map();
    const key = {};
    this.hooks.set(key, hook);
    const last = this.hooks.get(lastKey);
    if (last) this.setLastHook(last);
    return () => void this.hooks!.delete(key);
  }

  /** Sets the hook that runs behind the others and sees the gradient that they leave. */
  setLastHook(hook: GradHook): void {
    this.hooks ??= new Map();
    // A map keeps the position of a key that it already has.
    this.hooks.delete(lastKey);
    this.hooks.set(lastKey, hook);
  }

  runHooks(): void {
    if (this.hooks === null) return;
    for (const hook of this.hooks.values()) {
      const other = hook(this.grad!);
      if (other === null) continue;
      this.grad!.release();
      this.grad = other;
    }
  }

  /** Adds a contribution of any dtype that other targets may share and that no longer changes. */
  abstract share(contribution: Storage): void;

  /** Called after each contribution. */
  abstract contributed(): void;

  open(): Strided {
    this.grad ??= allocate(this.dtype, this.count, this.device);
    return this.grad.dense;
  }

  close(): void {
    this.isFilled = true;
    this.contributed();
  }

  begin(): Storage {
    if (this.isFilled) return allocate(this.dtype, this.count, this.device);
    this.open();
    return this.grad!;
  }

  end(contribution: Storage): void {
    if (contribution !== this.grad) {
      this.add(contribution);
      contribution.release();
    }
    this.close();
  }

  protected add(contribution: Storage): void {
    const own = this.open();
    kernels().map('add', this.dtype, [this.count], own, own, contribution.dense);
  }
}
