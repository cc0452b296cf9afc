// Kernels that depend on positions: lookups by index, sums by index, running sums, sorting, triangles.
import { type DType, isFloat } from '../../core/dtype.ts';
import { reader, type Value, writer } from '../../core/element.ts';
import type { ScatterOp } from '../declarations/names.ts';
import type { DenseKernels, LookupSizes } from '../kernels.ts';
import type { Strided } from '../operands.ts';
import { readerAs } from './access.ts';

/** Calls body(position in [outer, count, inner], position in [outer, size, inner]) for every element of the former. */
function forEachLookup(
  index: Strided,
  { outer, count, size, inner, perElement }: LookupSizes,
  body: (short: number, long: number) => void,
): void {
  for (let o = 0; o < outer; o++) {
    for (let j = 0; j < count; j++) {
      for (let i = 0; i < inner; i++) {
        const short = (o * count + j) * inner + i;
        const at = Number(index.memory.host[index.offset + (perElement ? short : j)]);
        body(short, (o * size + at) * inner + i);
      }
    }
  }
}

export const lookup: DenseKernels['lookup'] = ({ out, a, index }, sizes) => {
  const [read, write] = [reader(a.memory), writer(out.memory)];
  forEachLookup(index, sizes, (short, long) => write(out.offset + short, read(a.offset + long)));
};

/** Returns the dtype in which sums of `dtype` are computed. */
const computing = (dtype: DType): DType => (isFloat(dtype) ? 'float64' : 'int64');

/** Combines an element with a value that scatter writes to it; both are numbers, or both bigints. */
const combinations: Readonly<Record<ScatterOp, (own: Value, given: Value) => Value>> = {
  add: (own, given) => ((own as number) + (given as number)) as Value,
  replace: (_, given) => given,
  mul: (own, given) => ((own as number) * (given as number)) as Value,
  min: (own, given) => (given < own || Number.isNaN(given) ? given : own),
  max: (own, given) => (given > own || Number.isNaN(given) ? given : own),
};

export const scatter: DenseKernels['scatter'] = ({ out, a, index }, { op, ...sizes }) => {
  const compute = computing(out.memory.dtype);
  const [read, own, write] = [readerAs(a.memory, compute), readerAs(out.memory, compute), writer(out.memory)];
  const combine = combinations[op];
  forEachLookup(index, sizes, (short, long) =>
    write(out.offset + long, combine(own(out.offset + long), read(a.offset + short))),
  );
};

export const cumsum: DenseKernels['cumsum'] = ({ out, a }, { outer, size, inner, reverse }) => {
  const [read, write] = [readerAs(a.memory, computing(a.memory.dtype)), writer(out.memory)];
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      let total: Value = isFloat(a.memory.dtype) ? 0 : 0n;
      for (let s = 0; s < size; s++) {
        const at = (o * size + (reverse ? size - 1 - s : s)) * inner + i;
        total = ((total as number) + (read(a.offset + at) as number)) as Value;
        write(out.offset + at, total);
      }
    }
  }
};

/** Compares for an ascending order with NaN last. */
function compare(a: Value, b: Value): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return a < b ? -1 : a > b ? 1 : 0;
}

export const sort: DenseKernels['sort'] = ({ values, indices, a }, { rows, cols, count, descending }) => {
  const [read, write, writeIndex] = [reader(a.memory), writer(values.memory), writer(indices.memory)];
  for (let r = 0; r < rows; r++) {
    const row = Array.from({ length: cols }, (_, c) => ({ value: read(a.offset + r * cols + c), at: c }));
    row.sort((x, y) => (descending ? compare(y.value, x.value) : compare(x.value, y.value)));
    for (const [i, { value, at }] of row.slice(0, count).entries()) {
      write(values.offset + r * count + i, value);
      writeIndex(indices.offset + r * count + i, at);
    }
  }
};

export const triangle: DenseKernels['triangle'] = ({ out, a }, { batch, rows, cols, diagonal, upper }) => {
  const [read, write] = [reader(a.memory), writer(out.memory)];
  for (let i = 0; i < batch * rows * cols; i++) {
    const row = Math.floor(i / cols) % rows;
    const above = (i % cols) - row;
    const isKept = upper ? above >= diagonal : above <= diagonal;
    write(out.offset + i, isKept ? read(a.offset + i) : 0);
  }
};
