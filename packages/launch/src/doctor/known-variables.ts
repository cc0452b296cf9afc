// Variables of the environment with our prefixes that nothing reads: most likely misspelled.

import { flags, flagsToCome, variableOf } from '../cli/flags.ts';
import { nearest } from '../nearest.ts';

/** What ringwise's packages and their addons read. */
export const ringwiseVariables: readonly string[] = [
  'RINGWISE_BACKEND',
  'RINGWISE_CPU',
  'RINGWISE_FLIGHT_DIR',
  'RINGWISE_HOST_ID',
  'RINGWISE_KERNELS',
  'RINGWISE_LIBCUBLASLT',
  'RINGWISE_LIBCUDA',
  'RINGWISE_LIBCUDNN',
  'RINGWISE_LIBNCCL',
  'RINGWISE_LIBNVRTC',
  'RINGWISE_METRICS_FD',
  'RINGWISE_MPI',
  'RINGWISE_NATIVE_PATH',
  'RINGWISE_NCCL_CHECK',
  'RINGWISE_NVIDIA_DIR',
  'RINGWISE_PYTHON',
  'RINGWISE_RUN_ID',
  'RINGWISE_SECRET',
  'RINGWISE_SECRET_FILE',
  'RINGWISE_TENSOR_DEBUG',
  'RINGWISE_TESTS',
  'RINGWISE_TEST_GPU',
  'RINGWISE_TIMEOUT_MS',
  'RINGWISE_TUNING',
];
/** One for each verb. */
const algorithms = 'RINGWISE_ALGO_';

export interface StrangeVariable {
  readonly name: string;
  readonly meant: string | undefined;
}

/** The variables that start with RINGWISE_ or PET_ and that nothing reads, with the one that was most likely meant. */
export function strangeVariables(env: NodeJS.ProcessEnv): StrangeVariable[] {
  const known = [
    ...ringwiseVariables,
    ...flags.map(({ name }) => variableOf(name)),
    ...flagsToCome.map(variableOf),
  ];
  return Object.keys(env)
    .filter((name) => /^(RINGWISE|PET)_/.test(name) && !name.startsWith(algorithms) && !known.includes(name))
    .map((name) => ({ name, meant: nearest(name, known) }));
}
