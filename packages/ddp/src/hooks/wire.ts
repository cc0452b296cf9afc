// Sends fewer bytes between hosts, rounded in native code. Inside a host, gradients are added with all their bits.
import { asBuffer } from '@ringwise/collectives';
import { checkOneOf } from '../check.ts';
import { type CommHook, type GradBucket, plainHook } from '../reducer/hook.ts';

/**
 * Returns a hook that sends float32 gradients between hosts as 'bfloat16' (half the bytes) or 'int8' (a
 * quarter; the rounding error is kept in a residual of each bucket and added to the next step's gradients).
 * Other gradients are sent unchanged. Use it for one model only.
 */
export function wireHook(wire: 'bfloat16' | 'int8'): CommHook {
  checkOneOf('wireHook: wire', wire, ['bfloat16', 'int8']);
  const residuals = new WeakMap<GradBucket, Float32Array>();
  return function* onWire(bucket, group) {
    if (bucket.dtype !== 'float32') return yield* plainHook(bucket, group);
    if (wire === 'bfloat16') {
      yield group.allReduce(bucket, { op: 'avg', wire, label: bucket.label });
      return;
    }
    const residual = residuals.get(bucket) ?? new Float32Array(asBuffer(bucket).count);
    residuals.set(bucket, residual);
    yield group.allReduce(bucket, { op: 'avg', wire, residual, label: bucket.label });
  };
}
