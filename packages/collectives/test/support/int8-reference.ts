// Computes an all-reduce with wire 'int8' among ranks on hosts of their own, with the same bits as
// native/coll/reduce/wire.h and native/coll/algo/all_reduce/all_reduce_compressed.cc. Of the operations
// here only roundBlock() and the additions round.
const blockCount = 32;
const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** Returns what a receiver gets if `values` travel as one block. */
function roundBlock(values: Float32Array): Float32Array {
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  float[0] = largest;
  const exponent = ((bits[0] as number) + 0x10000) >>> 23; // rounds up if the largest value would be 128 steps
  if (exponent >= 255) return new Float32Array(values.length).fill(Number.NaN); // also if a value is NaN
  const step = 2 ** (Math.max(exponent - 6, 1) - 127);
  return values.map((value) => roundToEven(value / step) * step);
}

function roundToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return (rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor) + 0; // + 0 turns -0 into 0
}

/** Returns `values + residual` as they arrive in blocks, and leaves the rounding errors in `residual`. */
function round(values: Float32Array, residual: Float32Array): Float32Array {
  const delivered = new Float32Array(values.length);
  for (let first = 0; first < values.length; first += blockCount) {
    const [from, to] = [first, Math.min(first + blockCount, values.length)];
    const block = values.slice(from, to).map((value, i) => value + residual[from + i]!);
    const rounded = roundBlock(block);
    delivered.set(rounded, from);
    if (!Number.isNaN(rounded[0]))
      residual.set(
        block.map((value, i) => value - rounded[i]!),
        from,
      );
  }
  return delivered;
}

/** Reduces `buffers` in place. `buffers` and `residuals` hold one array for each rank; both are overwritten. */
export function allReduceByInt8(buffers: readonly Float32Array[], residuals: readonly Float32Array[]): void {
  const [size, count] = [buffers.length, buffers[0]!.length];
  const part = Math.ceil(Math.ceil(count / size) / 16) * 16;
  for (let owner = 0; owner < size; owner++) {
    const cut = (array: Float32Array) => array.subarray(owner * part, (owner + 1) * part);
    const sum = cut(buffers[owner]!).slice();
    for (let k = 1; k < size; k++) {
      const rank = (owner - k + size) % size;
      const arriving = round(cut(buffers[rank]!), cut(residuals[rank]!));
      for (let i = 0; i < sum.length; i++) sum[i]! += arriving[i]!;
    }
    const delivered = round(sum, cut(residuals[owner]!));
    for (const buffer of buffers) cut(buffer).set(delivered);
  }
}
