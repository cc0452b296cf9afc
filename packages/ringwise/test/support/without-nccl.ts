// Tells device tests whether to skip NCCL.
import { init } from '@ringwise/collectives';
import { isTestGpu } from '@ringwise/testing';

/** Reason why there is no NCCL for the GPU; empty if there is. The software device always has NCCL. */
export const withoutNccl = isTestGpu
  ? await init({ backend: 'nccl' }).then(
      (group) => group.close().then(() => ''),
      (error: Error) => error.message,
    )
  : '';
