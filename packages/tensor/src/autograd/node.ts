// One recorded operation: the values that its gradient reads, the targets of its results, and the function that
// computes them.
//
// Lifetime: saved memory is held by reference count, so disposing a tensor does not free memory that the tape needs. It
// is released when backward has run the node, or when the node can no longer be run: its output is disposed and no node
// that can still be run uses that output (`refs`).
import { kernels } from '../backends/index.ts';
import type { Strided } from '../backends/operands.ts';
import { isDetectingAnomaly, isGradEnabled } from '../core/context.ts';
import type { DType } from '../core/dtype.ts';
import { allocate, type Storage } from '../core/memory/storage.ts';
import type { Shape } from '../core/shape.ts';
import type { Device } from '../device/device.ts';
import { savedValueChanged } from '../errors.ts';
import { checkForward, siteOf } from './anomaly.ts';
import type { Leaf } from './leaf.ts';
import { GradTarget } from './target.ts';

/**
 * Sends the gradient of the output to the inputs. Every input that has a target gets exactly one contribution. With
 * `graph`, a GradGraph, the function ignores `grad` and sends tensors by `graph`; a function without that parameter
 * cannot.
 */
export type Backward = (grad: Storage, graph: object | null) => void;

const nothing: readonly never[] = [];
let lastSeq = 0;

/** Returns the number of the operation that was recorded last. */
export const latestSeq = (): number => lastSeq;

/** The part of a tensor that the graph needs. */
export interface Recorded {
  readonly dtype: DType;
  readonly count: number;
  readonly device: Device;
  readonly shape: Shape;
  readonly strided: Strided;
  readonly isKept: boolean;
  target: Node | Leaf | null;
  dispose(): void;
}

export class Node extends GradTarget {
  /** Grows with time, so an operation has a larger number than all that it depends on. */
  declare readonly seq: number;
  declare readonly name: string;
  /** The source location of the call; recorded only by detectAnomaly(). */
  declare readonly site: Error | null;
  declare readonly output: Recorded;
  declare inputs: readonly (GradTarget | null)[];
  /** Null once the node's memory has been given back. */
  declare backward: Backward | null;
  /**
   * Replaces `backward` for a checkpoint: makes a graph over which the gradient goes to the same inputs, and returns
   * its root. Null for other operations.
   */
  declare recompute: (() => GradTarget) | null;
  declare private saved: readonly Storage[];
  /** The sum of the versions of the saved values, which only grow. */
  declare private version: number;
  /** Number of references to this node: one by the output until it is disposed, one by each use as an input. */
  declare private refs: number;

  constructor(
    name: string,
    output: Recorded,
    inputs: readonly (GradTarget | null)[],
    saved: readonly Storage[],
    backward: Backward,
  ) {
    super(output.dtype, output.count, output.device);
    this.seq = ++lastSeq;
    this.recompute = null;
    this.refs = 1;
    this.name = name;
    this.site = isDetectingAnomaly() ? siteOf(name) : null;
    this.output = output;
    this.inputs = inputs;
    this.saved = saved;
    this.backward = backward;
    let version = 0;
    for (let i = 0; i < saved.length; i++) version += saved[i]!.retain().version;
    this.version = version;
    for (let i = 0; i < inputs.length; i++) {
      const input = inputs[i];
      if (input instanceof Node) input.refs++;
    }
  }

  override get isLeaf(): false {
    return false;
  }

  override open(): Strided {
    // Shared memory may also be the gradient of another target, so add to a copy.
    if (this.grad !== null && this.grad.refs > 1) {
      const own = allocate(this.dtype, this.count, this.device);
      kernels().copy([this.count], own.dense, this.grad.dense);
      this.grad.release();
      this.grad = own;
    }
    return super.open();
  }

  override share(contribution: Storage): void {
    if (this.grad !== null) this.add(contribution);
    else if (contribution.memory.dtype === this.dtype) this.grad = contribution.retain();
    else kernels().copy([this.count], this.open(), contribution.dense);
    this.close();
  }

  /** Throws if a value that the gradient reads was changed in place after it was saved. */
  checkSaved(): void {
    let version = 0;
    for (let i = 0; i < this.saved.length; i++) version += this.saved[i]!.version;
    if (version !== this.version) throw savedValueChanged(this.name);
  }

  override contributed(): void {}

  dropGrad(): void {
    this.grad?.release();
    this.grad = null;
    this.isFilled = false;
  }

  /** Returns the saved storage with this memory. */
  savedStorage(memory: Strided['memory']): Storage {
    return this.saved.find((storage) => storage.memory === memory)!;
  }

  /** Whether the gradient can be computed as tensors. */
  get isTwiceDifferentiable(): boolean {
    return this.backward !== null && this.backward.length > 1;
  }

  /** Releases saved memory. The node cannot run again. */
  clear(): void {
    const saved = this.saved;
    for (let i = 0; i < saved.length; i++) saved[i]!.release();
    this.saved = nothing;
    this.inputs = nothing;
    this.backward = null;
    this.recompute = null;
  }

  /**
   * Releases one reference: the output is disposed, or a node that used it is cleared. Clears this node, and those
   * before it, if nothing can reach them any more.
   */
  unreferenced(): void {
    if (--this.refs > 0) return;
    const unreachable: Node[] = [this];
    for (let node = unreachable.pop(); node !== undefined; node = unreachable.pop()) {
      for (const input of node.inputs) {
        if (input instanceof Node && --input.refs === 0) unreachable.push(input);
      }
      node.clear();
    }
  }
}

/** Returns whether an operation on `a` (and `b`, `c`) is to be recorded. */
export function isRecording(a: Recorded, b?: Recorded | null, c?: Recorded | null): boolean {
  return (a.target !== null || (b ?? a).target !== null || (c ?? a).target !== null) && isGradEnabled();
}

/**
 * Puts `output` on the tape. `saved` is the memory that `backward` reads; `inputs` are the targets to which it
 * contributes.
 */
export function record<Output extends Recorded>(
  name: string,
  output: Output,
  inputs: readonly (GradTarget | null)[],
  saved: readonly Storage[],
  backward: Backward,
): Output {
  const node = new Node(name, output, inputs, saved, backward);
  output.target = node;
  if (node.site !== null) checkForward(node);
  return output;
}
