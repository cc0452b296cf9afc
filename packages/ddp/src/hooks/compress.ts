// Half the bytes: gradients of float32 or float64 travel as float16 or bfloat16, inside a host too.
import { type Allocated, fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from '@ringwise/collectives';
import { checkOneOf } from '../check.ts';
import { type CommHook, type GradBucket, plainHook } from '../reducer/hook.ts';

export type HalfType = 'float16' | 'bfloat16';

/**
 * A hook that rounds gradients to `dtype`, after the division by the number of ranks, and their sum once more. Converts in
 * JavaScript: where only the link between hosts is slow, `wireHook('bfloat16')` costs less.
 */
export function compressHook(dtype: HalfType): CommHook {
  checkOneOf('compressHook: dtype', dtype, ['float16', 'bfloat16']);
  const [to, from] = dtype === 'float16' ? [toFloat16, fromFloat16] : [toBfloat16, fromBfloat16];
  const halves = new WeakMap<GradBucket, Allocated<HalfType>>();
  return function* compress(bucket, group) {
    if (bucket.dtype === 'float16' || bucket.dtype === 'bfloat16') return yield* plainHook(bucket, group);
    const data = bucket.data as Float32Array | Float64Array;
    const half = halves.get(bucket) ?? group.alloc(data.length, dtype);
    halves.set(bucket, half);
    const { size } = group;
    for (let i = 0; i < data.length; i++) half.data[i] = to(data[i]! / size);
    yield group.allReduce(half, { label: bucket.label });
    for (let i = 0; i < data.length; i++) data[i] = from(half.data[i]!);
  };
}
