// Divides the batch of a forward among threads, and joins their results. Tensors take part by shape, under a shared
// symbol, so that this package needs none.
import { crc32 } from 'node:zlib';
import type { BufferView, Group } from '@ringwise/collectives';
import { differentInputs, notRows } from '../errors.ts';

/** The rows of a tensor: its parts along the first dimension. */
interface Rows {
  readonly count: number;
  /** Whether the tensor's gradient is recorded. */
  readonly needsGrad: boolean;
  /** Returns the values, contiguous. */
  readonly memory: () => BufferView;
  /** Returns `count` rows from row `from` on. */
  readonly take: (from: number, count: number) => unknown;
  /** Returns `count` rows: `fill` writes their values, and gradients of rows `from` and on go to this tensor. */
  readonly within: (count: number, from: number, fill: (all: BufferView) => void) => unknown;
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

/** Runs `forward` on this thread's rows of each tensor in `args`. Returns the rows of all threads. Blocks. */
export function inShares(
  group: Group,
  args: readonly unknown[],
  forward: (args: readonly unknown[]) => unknown,
  weigh: (weight: number) => void,
): unknown {
  const inputs = args.map(rowsOf);
  const count = inputs.find((rows) => rows !== null)?.count ?? 0;
  compareInputs(group, inputs);
  // A batch of fewer rows than threads is computed by all.
  const isDivided = count >= group.size && inputs.every((rows) => rows === null || rows.count === count);
  if (!isDivided) {
    const whole = forward(args);
    if (rowsOf(whole)?.needsGrad) weigh(1);
    return whole;
  }
  const starts = Array.from({ length: group.size + 1 }, (_, rank) => Math.floor((rank * count) / group.size));
  const [from, end] = [starts[group.rank]!, starts[group.rank + 1]!];
  const output = forward(args.map((arg, i) => inputs[i]?.take(from, end - from) ?? arg));
  const own = rowsOf(output);
  if (own === null || own.count !== end - from) throw notRows(end - from, own?.count ?? null);
  // Each thread's loss is that of all rows, but its gradients are of its own rows only: they add up. Weights that add
  // up to 1 make a sum of the weighted average.
  if (own.needsGrad) weigh((end - from) / count);
  const mine = own.memory();
  const rowLength = mine.count / (end - from);
  const counts = starts.slice(1).map((next, rank) => (next - starts[rank]!) * rowLength);
  return own.within(count, from, (all) => void group.allGatherSync(carrier(mine), carrier(all), { counts }));
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
