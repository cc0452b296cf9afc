// Sends float32 and float64 gradients as float16 or bfloat16, also inside a host: half or a quarter of the bytes.
import { type Allocated, fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from '@ringwise/collectives';
import { checkOneOf } from '../check.ts';
import { type CommHook, type GradBucket, plainHook } from '../reducer/hook.ts';

/** A float of 16 bits in which compressHook() sends gradients. */
export type HalfType = 'float16' | 'bfloat16';

/**
 * Returns a hook that divides gradients by the number of ranks, rounds them to `dtype`, and rounds their sum
 * again. 16-bit and 8-bit gradients are averaged as they are. The conversion runs in JavaScript. If only the link
 * between hosts is slow, `wireHook('bfloat16')` is faster.
 */
export function compressHook(dtype: HalfType): CommHook {
  checkOneOf('compressHook: dtype', dtype, ['float16', 'bfloat16']);
  const [to, from] = dtype === 'float16' ? [toFloat16, fromFloat16] : [toBfloat16, fromBfloat16];
  const halves = new WeakMap<GradBucket, Allocated<HalfType>>();
  return function* compress(bucket, group) {
    if (bucket.dtype !== 'float32' && bucket.dtype !== 'float64') return yield* plainHook(bucket, group);
    const data = bucket.data as Float32Array | Float64Array;
    const half = halves.get(bucket) ?? group.alloc(data.length, dtype);
    halves.set(bucket, half);
    const { size } = group;
    for (let i = 0; i < data.length; i++) half.data[i] = to(data[i]! / size);
    yield group.allReduce(half, { label: bucket.label });
    for (let i = 0; i < data.length; i++) data[i] = from(half.data[i]!);
  };
}
