// Tells which memory an operation uses.

import type { Operation } from '../backend.ts';
import type { BufferView } from './buffer.ts';

/**
 * Returns the buffer that an operation writes on rank `rank`, not counting a residual; null if there is none.
 */
export function writtenBy(operation: Operation, rank: number): BufferView | null {
  switch (operation.verb) {
    case 'allReduce':
    case 'recv':
      return operation.buffer;
    case 'reduce':
      return operation.root === rank ? operation.buffer : null;
    case 'broadcast':
      return operation.root === rank ? null : operation.buffer;
    case 'barrier':
    case 'send':
      return null;
    default:
      return operation.output;
  }
}

/** Returns the buffer of an operation that exists on every rank; null for a barrier. */
export function memoryOf(operation: Operation): BufferView | null {
  switch (operation.verb) {
    case 'barrier':
      return null;
    case 'allGather':
    case 'gather':
    case 'allToAll':
      return operation.input;
    case 'scatter':
    case 'reduceScatter':
      return operation.output;
    default:
      return operation.buffer;
  }
}

/** Returns whether the program has transferred a buffer of the operation away since the call. */
export const hasDetached = (operation: Operation): boolean =>
  buffersOf(operation).some(({ host, count }) => host !== null && count > 0 && host.byteLength === 0);

/** Returns all buffers that an operation has on this rank. */
export function buffersOf(operation: Operation): readonly BufferView[] {
  switch (operation.verb) {
    case 'barrier':
      return [];
    case 'allReduce':
      return operation.residual === null ? [operation.buffer] : [operation.buffer, operation.residual];
    case 'reduce':
    case 'broadcast':
    case 'send':
    case 'recv':
      return [operation.buffer];
    default:
      return [operation.input, operation.output].filter((view) => view !== null);
  }
}
