// Assigns processors and a GPU of the host to each rank. The command taskset binds a rank and then becomes
// it, so that all the rank's threads are bound from the start.

import { findProgram } from '../cli/program.ts';
import type { RunOptions } from '../cli/run-options.ts';
import { noBinding, tooManyForGpus } from '../errors.ts';
import { type BindingKind, bindRanks, coresOf } from './binding.ts';
import type { RankBinding } from './plan.ts';
import { formatList, gpuNodes, readTopology } from './topology.ts';

/**
 * Returns the processors and GPU of each local rank; an empty list if the options request no binding. Throws
 * ERR_LAUNCH_ARGUMENT if the host cannot provide it.
 */
export function bindingsOf(
  { binding, isLocalRankVirtual }: Pick<RunOptions, 'binding' | 'isLocalRankVirtual'>,
  nproc: number,
  gpus: number,
  env: NodeJS.ProcessEnv,
): RankBinding[] {
  // On a host without GPUs the ranks compute on the CPU, so there may be any number of them.
  if (isLocalRankVirtual && gpus > 0 && gpus < nproc) throw tooManyForGpus(nproc, gpus, env);
  if (binding === null && !isLocalRankVirtual) return [];
  const bound = binding === null ? null : boundTo(binding, nproc, env);
  const devices = env.CUDA_VISIBLE_DEVICES?.split(',');
  return Array.from({ length: nproc }, (_, local) => {
    const { command = [], threads } = bound?.[local] ?? {};
    return {
      command,
      env: {
        ...(threads && env.OMP_NUM_THREADS === undefined && { OMP_NUM_THREADS: threads }),
        ...(isLocalRankVirtual && {
          LOCAL_RANK: '0',
          CUDA_VISIBLE_DEVICES: devices ? (devices[local]?.trim() ?? '') : `${local}`,
        }),
      },
    };
  });
}

function boundTo(kind: BindingKind, nproc: number, env: NodeJS.ProcessEnv) {
  const taskset = findProgram('taskset', env);
  const processors = readTopology();
  if (taskset === null) throw noBinding('there is no taskset in PATH');
  if (processors.length === 0)
    throw noBinding(`${process.platform} does not tell which processors may be used`);
  return bindRanks(kind, processors, nproc, gpuNodes(env)).map((own) => ({
    command: [taskset, '-c', formatList(own.map(({ id }) => id))],
    threads: `${coresOf(own)}`,
  }));
}
