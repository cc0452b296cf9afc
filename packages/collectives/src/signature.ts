// An operation as text. All ranks must call the same one; the text is what a mismatch error shows of each side.
import type { Operation } from './backend.ts';
import type { BufferView } from './buffer.ts';

/** "allReduce sum 4096 × float32", "broadcast 3 × int8 from rank 0", "barrier". Equal text, equal operation. */
export function signatureOf(operation: Operation): string {
  switch (operation.verb) {
    case 'allReduce':
      return `allReduce ${operation.op} ${shapeOf(operation.buffer)}`;
    case 'broadcast':
      return `broadcast ${shapeOf(operation.buffer)} from rank ${operation.root}`;
    case 'allGather':
      return `allGather ${shapeOf(operation.input)}`;
    case 'reduceScatter':
      return `reduceScatter ${operation.op} ${shapeOf(operation.output)}`;
    case 'send':
      return `send ${shapeOf(operation.buffer)} to rank ${operation.peer}`;
    case 'recv':
      return `recv ${shapeOf(operation.buffer)} from rank ${operation.peer}`;
    case 'barrier':
      return 'barrier';
  }
}

/** "4096 × float32". A send and its recv must agree in this part. */
export function shapeOf(buffer: BufferView): string {
  return `${buffer.count} × ${buffer.dtype}`;
}
