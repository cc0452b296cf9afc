// Finds environment variables with our prefixes that no package reads and that are therefore probably
// misspelled.

import { flags, flagsToCome, variableOf } from '../cli/flags.ts';
import { nearest } from '../nearest.ts';

/** Variables that ringwise's packages, their addons, builds and tests read. */
export const ringwiseVariables: readonly string[] = [
  'RINGWISE_BACKEND',
  'RINGWISE_CPU',
  'RINGWISE_CUDA',
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
  'RINGWISE_MPICC',
  'RINGWISE_NATIVE_PATH',
  'RINGWISE_NCCL_CHECK',
  'RINGWISE_NVIDIA_DIR',
  'RINGWISE_PYTHON',
  'RINGWISE_RUN_ID',
  'RINGWISE_SECRET',
  'RINGWISE_SECRET_FILE',
  'RINGWISE_SEED',
  'RINGWISE_TENSOR_DEBUG',
  'RINGWISE_TESTS',
  'RINGWISE_TEST_DATA',
  'RINGWISE_TEST_GPU',
  'RINGWISE_TIMEOUT_MS',
  'RINGWISE_TUNING',
];
/** Prefix of one variable per verb. */
const algorithms = 'RINGWISE_ALGO_';

export interface StrangeVariable {
  readonly name: string;
  readonly meant: string | undefined;
}

/**
 * Returns the variables that start with RINGWISE_ or PET_ and are not known, each with the most similar known
 * one.
 */
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
