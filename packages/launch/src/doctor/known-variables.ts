// Lists the environment variables that ringwise knows, and finds those that start with RINGWISE_ or PET_ (torchrun's
// prefix) but are not known: they are probably misspelled.

import { flags, unsupportedFlags, variableOf } from '../cli/flags.ts';
import { nearest } from '../nearest.ts';

/** Variables that ringwise's packages, addons, builds and tests read, besides those of flags and of algorithms. */
export const ringwiseVariables: readonly string[] = [
  'RINGWISE_BACKEND',
  'RINGWISE_CPU',
  'RINGWISE_CUDA',
  'RINGWISE_CUDA_ARCHITECTURES',
  'RINGWISE_FLIGHT_DIR',
  'RINGWISE_HOST_ID',
  'RINGWISE_INCARNATION',
  'RINGWISE_KERNELS',
  'RINGWISE_LIBCUBLASLT',
  'RINGWISE_LIBCUDA',
  'RINGWISE_LIBCUDNN',
  'RINGWISE_LIBNCCL',
  'RINGWISE_LIBNVRTC',
  'RINGWISE_METRICS_FD',
  'RINGWISE_MIN_RANKS',
  'RINGWISE_MPI',
  'RINGWISE_MPICC',
  'RINGWISE_NATIVE_PATH',
  'RINGWISE_NCCL_CHECK',
  'RINGWISE_NVIDIA_DIR',
  'RINGWISE_PROGRESS',
  'RINGWISE_PYTHON',
  'RINGWISE_RUN_ID',
  'RINGWISE_SECRET',
  'RINGWISE_SECRET_FILE',
  'RINGWISE_SEED',
  'RINGWISE_SLOT',
  'RINGWISE_SOFTWARE_GPU',
  'RINGWISE_STANDBY',
  'RINGWISE_TENSOR_DEBUG',
  'RINGWISE_TESTS',
  'RINGWISE_TEST_DATA',
  'RINGWISE_TEST_GPU',
  'RINGWISE_TIMEOUT_MS',
  'RINGWISE_TUNING',
];
/** Prefix of the variables that choose the algorithm of a verb, such as RINGWISE_ALGO_ALLREDUCE. */
const algorithmPrefix = 'RINGWISE_ALGO_';

export interface UnknownVariable {
  readonly name: string;
  /** The most similar known name, if one is similar enough. */
  readonly suggestion: string | undefined;
}

/**
 * Returns the variables that start with RINGWISE_ or PET_ and are not known. Every name with the prefix of algorithms
 * counts as known.
 */
export function unknownVariables(env: NodeJS.ProcessEnv): UnknownVariable[] {
  const known = [
    ...ringwiseVariables,
    ...flags.map(({ name }) => variableOf(name)),
    ...unsupportedFlags.map(variableOf), // flags of torchrun that ringwise does not have yet
  ];
  return Object.keys(env)
    .filter(
      (name) => /^(RINGWISE|PET)_/.test(name) && !name.startsWith(algorithmPrefix) && !known.includes(name),
    )
    .map((name) => ({ name, suggestion: nearest(name, known) }));
}
