import { describe, expect, it } from 'vitest';
import { detectLauncher, type Launched } from '../../../src/init/env.ts';

const unknown = {
  localRank: null,
  localSize: null,
  nodeRank: null,
  restart: 0,
  masterHost: null,
  masterPort: null,
  isStoreServed: false,
};

// The variables that each launcher sets for one process.
const cases: Record<string, [env: Record<string, string>, expected: Launched | null]> = {
  'torchrun, whose agent serves the store': [
    {
      RANK: '5',
      WORLD_SIZE: '8',
      LOCAL_RANK: '1',
      LOCAL_WORLD_SIZE: '4',
      GROUP_RANK: '1',
      MASTER_ADDR: 'localhost',
      MASTER_PORT: '29400',
      TORCHELASTIC_RUN_ID: 'x',
      TORCHELASTIC_RESTART_COUNT: '2',
      TORCHELASTIC_USE_AGENT_STORE: 'True',
    },
    {
      via: 'torchrun',
      rank: 5,
      size: 8,
      localRank: 1,
      localSize: 4,
      nodeRank: 1,
      restart: 2,
      masterHost: 'localhost',
      masterPort: 29400,
      isStoreServed: true,
    },
  ],
  'ringwise run': [
    { RANK: '0', WORLD_SIZE: '2', TORCHELASTIC_RUN_ID: 'x', RINGWISE_RUN_ID: 'x' },
    { ...unknown, via: 'ringwise', rank: 0, size: 2 },
  ],
  'variables set by hand': [
    { RANK: '0', WORLD_SIZE: '2', NODE_RANK: '1', TORCHELASTIC_USE_AGENT_STORE: 'False' },
    { ...unknown, via: 'env', rank: 0, size: 2, nodeRank: 1 },
  ],
  'Open MPI': [
    {
      OMPI_COMM_WORLD_RANK: '1',
      OMPI_COMM_WORLD_SIZE: '4',
      OMPI_COMM_WORLD_LOCAL_RANK: '1',
      OMPI_COMM_WORLD_LOCAL_SIZE: '2',
      OMPI_COMM_WORLD_NODE_RANK: '1',
      OMPI_MCA_orte_hnp_uri: '1325531136.0;tcp://172.17.0.2,10.0.0.2:45229',
      OMPI_MCA_ess_base_jobid: '1325531137',
      PMIX_RANK: '1',
    },
    {
      ...unknown,
      via: 'openmpi',
      rank: 1,
      size: 4,
      localRank: 1,
      localSize: 2,
      masterHost: '172.17.0.2',
      masterPort: 61440 + ((1325531137 >>> 12) % 4096),
    },
  ],
  MVAPICH2: [
    {
      MV2_COMM_WORLD_RANK: '3',
      MV2_COMM_WORLD_SIZE: '4',
      MV2_COMM_WORLD_LOCAL_RANK: '1',
      MV2_COMM_WORLD_LOCAL_SIZE: '2',
    },
    { ...unknown, via: 'mvapich2', rank: 3, size: 4, localRank: 1, localSize: 2 },
  ],
  'srun, rank 3 of 4 on the second node': [
    {
      SLURM_JOB_ID: '4100',
      SLURM_STEP_ID: '1',
      SLURM_PROCID: '3',
      SLURM_LOCALID: '1',
      SLURM_NODEID: '1',
      SLURM_NTASKS: '4',
      SLURM_STEP_NUM_TASKS: '4',
      SLURM_STEP_NUM_NODES: '2',
      SLURM_NODELIST: 'n[1-2]',
      SLURM_STEP_NODELIST: 'n[1-2]',
      SLURM_TASKS_PER_NODE: '2(x2)',
      SLURM_STEP_TASKS_PER_NODE: '2(x2)',
      SLURM_LAUNCH_NODE_IPADDR: '127.0.0.1',
    },
    {
      ...unknown,
      via: 'slurm',
      rank: 3,
      size: 4,
      localRank: 1,
      localSize: 2,
      nodeRank: 1,
      masterHost: 'n1',
      masterPort: 61444,
    },
  ],
  'srun of a step smaller than its job': [
    {
      SLURM_STEP_ID: '0',
      SLURM_PROCID: '0',
      SLURM_LOCALID: '0',
      SLURM_NODEID: '0',
      SLURM_NTASKS: '1',
      SLURM_STEP_NUM_TASKS: '1',
      SLURM_NODELIST: 'n[1-2]',
      SLURM_STEP_NODELIST: 'n2',
      SLURM_TASKS_PER_NODE: '1',
      SLURM_STEP_TASKS_PER_NODE: '1',
    },
    { ...unknown, via: 'slurm', rank: 0, size: 1, localRank: 0, localSize: 1, nodeRank: 0, masterHost: 'n2' },
  ],
  'srun with uneven nodes and zero-padded names': [
    {
      SLURM_STEP_ID: '0',
      SLURM_PROCID: '6',
      SLURM_LOCALID: '0',
      SLURM_NODEID: '3',
      SLURM_STEP_NUM_TASKS: '7',
      SLURM_STEP_NODELIST: 'gpu[01-03,07]',
      SLURM_STEP_TASKS_PER_NODE: '2(x3),1',
    },
    {
      ...unknown,
      via: 'slurm',
      rank: 6,
      size: 7,
      localRank: 0,
      localSize: 1,
      nodeRank: 3,
      masterHost: 'gpu01',
    },
  ],
  'srun --mpi=pmi2': [
    { SLURM_STEP_ID: '0', SLURM_PROCID: '1', SLURM_STEP_NUM_TASKS: '2', PMI_RANK: '1', PMI_SIZE: '2' },
    { ...unknown, via: 'slurm', rank: 1, size: 2 },
  ],
  'the body of an sbatch script': [
    { SLURM_JOB_ID: '7', SLURM_PROCID: '0', SLURM_LOCALID: '0', SLURM_NODEID: '0', SLURM_NTASKS: '4' },
    null,
  ],
  'a salloc shell': [{ SLURM_JOB_ID: '7', SLURM_NTASKS: '4', SLURM_NODELIST: 'n[1-2]' }, null],
  'Cray PALS': [
    { PALS_RANKID: '2', PMI_SIZE: '4', PALS_LOCAL_RANKID: '0', PALS_LOCAL_SIZE: '2', PMI_RANK: '2' },
    { ...unknown, via: 'pals', rank: 2, size: 4, localRank: 0, localSize: 2 },
  ],
  Flux: [
    { FLUX_TASK_RANK: '1', FLUX_JOB_SIZE: '4', FLUX_TASK_LOCAL_ID: '1' },
    { ...unknown, via: 'flux', rank: 1, size: 4, localRank: 1 },
  ],
  jsrun: [
    { JSM_NAMESPACE_RANK: '1', JSM_NAMESPACE_SIZE: '2', JSM_NAMESPACE_LOCAL_RANK: '1' },
    { ...unknown, via: 'lsf-jsrun', rank: 1, size: 2, localRank: 1 },
  ],
  MPICH: [
    { PMI_RANK: '1', PMI_SIZE: '2', MPI_LOCALRANKID: '1', MPI_LOCALNRANKS: '2' },
    { ...unknown, via: 'pmi', rank: 1, size: 2, localRank: 1, localSize: 2 },
  ],
  'a bare shell': [{ PATH: '/bin', MASTER_ADDR: 'x' }, null],
  'values that are no whole numbers': [
    { RANK: '1.5', WORLD_SIZE: '2', PMI_RANK: '-1', FLUX_TASK_RANK: '' },
    null,
  ],
};

describe('detectLauncher', () => {
  it.each(Object.entries(cases))('reads %s', (_, [env, expected]) => {
    expect(detectLauncher(env)).toEqual(expected);
  });

  it('takes all values from the first launcher that it finds', () => {
    const nested = {
      OMPI_COMM_WORLD_RANK: '1',
      OMPI_COMM_WORLD_SIZE: '2',
      SLURM_STEP_ID: '0',
      SLURM_PROCID: '0',
      SLURM_NTASKS: '9',
    };
    expect(detectLauncher(nested)).toMatchObject({ via: 'openmpi', rank: 1, size: 2, nodeRank: null });
  });

  it('lets MASTER_ADDR and MASTER_PORT go before what the launcher knows', () => {
    const env = { SLURM_STEP_ID: '0', SLURM_PROCID: '0', SLURM_JOB_ID: '1', SLURM_STEP_NODELIST: 'n1' };
    const master = { MASTER_ADDR: '10.0.0.1', MASTER_PORT: '5000' };
    expect(detectLauncher({ ...env, ...master })).toMatchObject({ masterHost: '10.0.0.1', masterPort: 5000 });
  });
});
