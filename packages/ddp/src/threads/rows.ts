// Divides the batch of a forward among threads, and concatenates their results. Tensors are recognized by a shared
// symbol and their structure, so that this package imports no tensor library.
import { crc32 } from 'node:zlib';
import type { BufferView, Group } from '@ringwise/collectives';
import { differentInputs, inputNeedsGradient, notRows } from '../errors.ts';

/** The rows of a tensor: its parts along the first dimension. */
interface Rows {
  readonly count: number;
  /** Whether the tensor's gradient is recorded. */
  readonly needsGrad: boolean;
  /** Returns the values, contiguous. */
  readonly memory: () => BufferView;
  /** Returns `count` rows from row `from` on. */
  readonly take: (from: number, count: number) => unknown;
  /**
   * Returns a tensor of `count` rows whose values `fill` writes. The gradients of its rows from `from` on, multiplied
   * by `scale`, become the gradient of this tensor.
   */
  readonly within: (count: number, from: number, scale: number, fill: (all: BufferView) => void) => unknown;
}

declare global {
  interface RingwiseSymbols {
    readonly rows: unique symbol;
  }
}
const rowsSymbol: RingwiseSymbols['rows'] = Symbol.for('ringwise.rows') as never;

function rowsOf(value: unknown): Rows | null {
  const offer = (value as { [rowsSymbol]?: () => Rows } | null | undefined)?.[rowsSymbol];
  return typeof offer === 'function' ? offer.call(value) : null;
}

const carrier = (view: BufferView) => ({ [Symbol.for('ringwise.buffer')]: () => view }) as never;

/**
 * Runs `forward` on this thread's rows of each tensor in `args`. Returns the rows of all threads. Blocks.
 *
 * Each thread computes the loss of all rows, but backpropagates only through its own rows, so the gradients of the
 * threads must be summed. ddp averages them, so gradients that enter these rows are multiplied by the number of
 * threads. Everything else is equal on all threads, and averaging does not change it: earlier gradients, a penalty on
 * parameters in the loss, a batch that all threads compute.
 */
export function inShares(
  group: Group,
  args: readonly unknown[],
  forward: (args: readonly unknown[]) => unknown,
): unknown {
  const inputs = args.map(rowsOf);
  if (inputs.some((rows) => rows?.needsGrad)) throw inputNeedsGradient();
  const count = inputs.find((rows) => rows !== null)?.count ?? 0;
  compareInputs(group, inputs);
  // A batch of fewer rows than threads is computed by every thread.
  const isDivided = count >= group.size && inputs.every((rows) => rows === null || rows.count === count);
  if (!isDivided) return forward(args);
  const starts = Array.from({ length: group.size + 1 }, (_, rank) => Math.floor((rank * count) / group.size));
  const [from, end] = [starts[group.rank]!, starts[group.rank + 1]!];
  const output = forward(args.map((arg, i) => inputs[i]?.take(from, end - from) ?? arg));
  const own = rowsOf(output);
  if (own === null || own.count !== end - from) throw notRows(end - from, own?.count ?? null);
  const mine = own.memory();
  const rowLength = mine.count / (end - from);
  const counts = starts.slice(1).map((next, rank) => (next - starts[rank]!) * rowLength);
  const fill = (all: BufferView) => void group.allGatherSync(carrier(mine), carrier(all), { counts });
  return own.within(count, from, group.size, fill);
}

/** Throws on all threads unless all have the same inputs. Compares checksums of those in host memory. */
function compareInputs(group: Group, inputs: readonly (Rows | null)[]): void {
  let sum = 0;
  for (const rows of inputs) {
    const host = rows?.memory().host;
    if (host) sum = crc32(new Uint8Array(host.buffer, host.byteOffset, host.byteLength), sum);
  }
  const sums = new Float64Array(group.size);
  group.allGatherSync(Float64Array.of(sum), sums);
  const other = sums.findIndex((each) => each !== sums[0]);
  if (other >= 0) throw differentInputs(other);
}
