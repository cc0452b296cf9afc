// Random numbers and dropout.

import { fillNormal, fillUniform } from '../../random/random-fill.ts';
import type { DenseKernels } from '../kernels.ts';
import { dropoutFactor, wordsOf } from './words.ts';

export const random: DenseKernels['random'] = (
  { out: { memory, offset } },
  { kind, count, stream, low, high },
) => {
  if (kind === 'uniform' || kind === 'normal') {
    const out = (memory.host as Float32Array).subarray(offset, offset + count);
    if (kind === 'uniform') fillUniform(out, stream, low, high);
    else fillNormal(out, stream);
    return;
  }
  const words = wordsOf(stream);
  const out = memory.host as BigInt64Array;
  for (let i = 0; i < count; i++) {
    out[offset + i] =
      kind === 'integers'
        ? BigInt(low) + ((BigInt(words(i)) * BigInt(high - low)) >> 32n)
        : ((BigInt(words(2 * i + 1)) << 32n) | BigInt(words(2 * i))) >> 1n;
  }
};

export const dropout: DenseKernels['dropout'] = ({ out, a }, { count, p, stream }) => {
  const factor = dropoutFactor(p, stream);
  for (let i = 0; i < count; i++) {
    const f = factor(i);
    out.memory.host[out.offset + i] = f === 0 ? 0 : (a.memory.host[a.offset + i] as number) * f;
  }
};
