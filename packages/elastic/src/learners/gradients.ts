// The gradients of a step as bytes, for a learner that applies the same step. A member copies its averaged gradients;
// the learner writes them to the memory that its optimizer reads.
import { type BufferView, byteSize, elementsOf } from '@ringwise/collectives';
import type { GradParam } from '@ringwise/ddp';
import { sharesOf } from '../transfer/shares.ts';

/** Gradients of the parameters of one share, one after the other. */
export interface Gradients {
  readonly hasGrad: readonly boolean[];
  readonly bytes: Uint8Array;
}

const bytesOf = ({ count, dtype }: BufferView) => count * byteSize(dtype);

function memoryOf(view: BufferView): Uint8Array {
  const { buffer, byteOffset, byteLength } = elementsOf(view);
  return new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
}

/** Divides parameters among `count` members: consecutive ones, about equally many bytes each. */
export function paramsBySource(params: readonly GradParam[], count: number): GradParam[][] {
  const sizes = params.map(({ value }) => bytesOf(value));
  return sharesOf(sizes, count).map((indices) => indices.map((index) => params[index]!));
}

/** Copies the gradients of `params` into memory from `allocate`. */
export function copiedGradients(
  params: readonly GradParam[],
  allocate: (bytes: number) => Uint8Array,
): Gradients {
  const grads = params.map(({ grad }) => grad);
  const total = grads.reduce((sum, grad) => sum + (grad === null ? 0 : bytesOf(grad)), 0);
  const bytes = allocate(total);
  let at = 0;
  for (const grad of grads) {
    if (grad === null) continue;
    const memory = memoryOf(grad);
    bytes.set(memory, at);
    at += memory.length;
  }
  return { hasGrad: grads.map((grad) => grad !== null), bytes };
}

/** Sets the gradients of `params`, each of which has bindGrad(), to `gradients`. */
export function setGradients(params: readonly GradParam[], { hasGrad, bytes }: Gradients): void {
  let at = 0;
  for (const [index, param] of params.entries()) {
    if (!hasGrad[index]) {
      param.dropGrad?.();
      continue;
    }
    if (param.grad === null) {
      const { value } = param;
      const { constructor: Elements } = elementsOf(value) as { readonly constructor: unknown };
      const host = new (Elements as new (count: number) => ArrayBufferView)(value.count);
      param.bindGrad!({ ...value, host });
    }
    const memory = memoryOf(param.grad!);
    memory.set(bytes.subarray(at, at + memory.length));
    at += memory.length;
  }
}
