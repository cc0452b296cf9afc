// Formats an operation as text. All ranks must call the same operation; a mismatch error shows each side's
// text.
import type { Operation } from '../backend.ts';
import type { BufferView } from './buffer.ts';

/**
 * Returns for example "allReduce sum 4096 × float32", "broadcast 3 × int8 from rank 0" or "barrier".
 * Collectives match if their texts are equal; the lengths of an allToAll are compared between each two ranks.
 */
export function signatureOf(operation: Operation): string {
  const text = callOf(operation);
  if (!('packing' in operation)) return text;
  const { packing, label } = operation;
  const digested = packing === 0 ? text : `${text} with digest ${packing.toString(16)}`;
  return label === undefined ? digested : `${digested} labelled "${label}"`;
}

function callOf(operation: Operation): string {
  const { verb } = operation;
  switch (operation.verb) {
    case 'allReduce':
      return `${verb} ${operation.op} ${shapeOf(operation.buffer)}${operation.wire === 'full' ? '' : ` over ${operation.wire}`}`;
    case 'reduce':
      return `${verb} ${operation.op} ${shapeOf(operation.buffer)} to rank ${operation.root}`;
    case 'broadcast':
      return `${verb} ${shapeOf(operation.buffer)} from rank ${operation.root}`;
    case 'allGather':
      return `${verb} ${partsOf(operation.input, operation.counts)}`;
    case 'gather':
      return `${verb} ${partsOf(operation.input, operation.counts)} to rank ${operation.root}`;
    case 'scatter':
      return `${verb} ${partsOf(operation.output, operation.counts)} from rank ${operation.root}`;
    case 'reduceScatter':
      return `${verb} ${operation.op} ${partsOf(operation.output, operation.counts)}`;
    case 'allToAll':
      // Lengths may differ between ranks; each pair of ranks compares them.
      return `${verb} ${operation.input.dtype}`;
    case 'send':
      return `${verb} ${shapeOf(operation.buffer)} to rank ${operation.peer}${tagOf(operation.tag)}`;
    case 'recv': {
      const from = operation.peer < 0 ? 'any rank' : `rank ${operation.peer}`;
      return `${verb} ${shapeOf(operation.buffer)} from ${from}${tagOf(operation.tag)}`;
    }
    case 'barrier':
      return verb;
  }
}

/** Returns for example "4096 × float32". A send and its recv must agree in this. */
export function shapeOf(buffer: BufferView): string {
  return `${buffer.count} × ${buffer.dtype}`;
}

function partsOf(part: BufferView, counts: readonly number[] | null): string {
  return counts === null ? shapeOf(part) : `${counts.join('+')} × ${part.dtype}`;
}

function tagOf(tag: number): string {
  return tag === 0 ? '' : ` with tag ${tag}`;
}
