// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011): maps a
// counter to four random words of 32 bits. The state of a stream is a position, so it can be read, set and skipped.

const rounds = 10;
const multiplier0 = 0xd2511f53;
const multiplier1 = 0xcd9e8d57;
const weyl0 = 0x9e3779b9;
const weyl1 = 0xbb67ae85;

/** Returns the upper 32 bits of the product of two unsigned words. */
function mulHigh(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const carry = (middle & 0xffff) + aLow * bHigh;
  return (aHigh * bHigh + Math.floor(middle / 0x10000) + Math.floor(carry / 0x10000)) >>> 0;
}

/** Writes the four random words for `counter` (4 words) and `key` (2 words) to `out`. */
export function philox4x32(out: Uint32Array, counter: Uint32Array, key: Uint32Array): void {
  let [c0, c1, c2, c3] = [counter[0]!, counter[1]!, counter[2]!, counter[3]!];
  let k0 = key[0]!;
  let k1 = key[1]!;
  for (let round = 0; round < rounds; round++) {
    const high0 = mulHigh(multiplier0, c0);
    const low0 = Math.imul(multiplier0, c0) >>> 0;
    const high1 = mulHigh(multiplier1, c2);
    const low1 = Math.imul(multiplier1, c2) >>> 0;
    c0 = (high1 ^ c1 ^ k0) >>> 0;
    c1 = low1;
    c2 = (high0 ^ c3 ^ k1) >>> 0;
    c3 = low0;
    k0 = (k0 + weyl0) >>> 0;
    k1 = (k1 + weyl1) >>> 0;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}
