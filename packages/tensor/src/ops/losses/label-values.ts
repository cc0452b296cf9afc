// Checks labels in host memory.

import type { Memory } from '../../backends/operands.ts';
import { labelOutOfRange } from '../../errors.ts';

/** Returns whether a label in dense host memory is `ignored`. Throws for the first other one outside [0, classes). */
export function checkLabelValues(op: string, { host }: Memory, classes: number, ignored: number): boolean {
  // Reads an int64 as two halves, low first, so that no BigInt is made for each element.
  const isWide = host instanceof BigInt64Array;
  const words = isWide ? new Int32Array(host.buffer, host.byteOffset, host.length * 2) : (host as Int32Array);
  const step = isWide ? 2 : 1;
  let hasIgnored = false;
  for (let i = 0; i < host.length; i++) {
    const word = words[i * step]!;
    const isWhole = !isWide || words[i * 2 + 1] === word >> 31;
    if (isWhole && word === ignored) hasIgnored = true;
    else if (!isWhole || word < 0 || word >= classes) throw labelOutOfRange(op, host[i]!, i, classes);
  }
  return hasIgnored;
}
