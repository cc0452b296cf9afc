import { init } from '@ringwise/collectives';
import { isTestGpu } from '@ringwise/testing';

/** Why there is no NCCL for the GPU; else empty. The software device has one. */
export const withoutNccl = isTestGpu
  ? await init({ backend: 'nccl' }).then(
      (group) => group.close().then(() => ''),
      (error: Error) => error.message,
    )
  : '';
