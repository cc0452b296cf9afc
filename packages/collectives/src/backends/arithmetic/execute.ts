// The reference implementation of the collectives: executes all ranks' parts of one operation at once, in one
// process.

import type { Verb } from '../../all-verbs.ts';
import type { AllToAll, Operation } from '../../backend.ts';
import type { DType } from '../../dtype.ts';
import { type ArrayOf, type BufferView, elementsOf } from '../../group/buffer.ts';
import { reduce, write } from './arithmetic.ts';

type Elements = ArrayOf<DType>;
type Of<V extends Verb> = readonly Extract<Operation, { verb: V }>[];

/**
 * Executes one collective. `operations` are all ranks' parts in rank order. Their signatures are equal, and the
 * counts of an allToAll fit each other; the caller has checked both.
 */
export function execute(operations: readonly Operation[]): void {
  const first = operations[0] as Operation;
  switch (first.verb) {
    case 'allReduce': {
      const all = operations as Of<'allReduce'>;
      const result = reduce(first.op, all);
      for (const { buffer } of all) write(buffer, result);
      break;
    }
    case 'reduce': {
      const all = operations as Of<'reduce'>;
      write(all[first.root]!.buffer, reduce(first.op, all));
      break;
    }
    case 'broadcast': {
      const all = operations as Of<'broadcast'>;
      const source = elementsOf(all[first.root]!.buffer);
      for (const [rank, { buffer }] of all.entries()) if (rank !== first.root) write(buffer, source);
      break;
    }
    case 'allGather':
    case 'gather': {
      const all = operations as Of<'allGather' | 'gather'>;
      const parts = all.map(({ input }) => elementsOf(input));
      for (const { output } of all) if (output !== null) join(parts, output);
      break;
    }
    case 'scatter': {
      const all = operations as Of<'scatter'>;
      split(elementsOf(all[first.root]!.input as BufferView), all);
      break;
    }
    case 'reduceScatter': {
      const all = operations as Of<'reduceScatter'>;
      const terms = all.map(({ input, factor }) => ({ buffer: input, factor }));
      split(reduce(first.op, terms), all);
      break;
    }
    case 'allToAll': {
      const all = operations as Of<'allToAll'>;
      for (const [rank, { output }] of all.entries()) join(partsFor(rank, all), output);
      break;
    }
  }
}

/**
 * Returns the host memory that an operation may write on this rank, not counting a residual. Empty for a send,
 * a barrier, and device memory. A backend that runs operations elsewhere copies these bytes back.
 */
export function bytesWritten(operation: Operation): Uint8Array {
  let view: BufferView | null = null;
  if ('output' in operation) view = operation.output;
  else if ('buffer' in operation && operation.verb !== 'send') view = operation.buffer;
  const { buffer, byteOffset, byteLength } = view?.host ?? new Uint8Array(0);
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Returns how many elements of an allToAll this rank sends to rank `rank` of `size`. */
export function sentTo(rank: number, size: number, { input, sendCounts }: AllToAll): number {
  return sendCounts?.[rank] ?? input.count / size;
}

/** Returns how many elements of an allToAll this rank expects from rank `rank` of `size`. */
export function expectedFrom(rank: number, size: number, { output, recvCounts }: AllToAll): number {
  return recvCounts?.[rank] ?? output.count / size;
}

function partsFor(rank: number, all: Of<'allToAll'>): Elements[] {
  return all.map((operation) => {
    let from = 0;
    for (let other = 0; other < rank; other++) from += sentTo(other, all.length, operation);
    return elementsOf(operation.input).subarray(from, from + sentTo(rank, all.length, operation));
  });
}

function join(parts: readonly Elements[], output: BufferView): void {
  const elements = elementsOf(output);
  let from = 0;
  for (const part of parts) {
    elements.set(part as never, from);
    from += part.length;
  }
}

function split(whole: Elements, all: readonly { readonly output: BufferView }[]): void {
  let from = 0;
  for (const { output } of all) {
    write(output, whole.subarray(from, from + output.count));
    from += output.count;
  }
}
