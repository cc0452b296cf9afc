// Detects the launcher that started this process, and the rank that it gave. The first launcher in order
// whose variable is set decides, and all values come from that launcher: nested launchers (mpirun inside a
// Slurm job) must not be mixed. A value counts only if it is a plain whole number. Without a launcher a
// process is alone; a world larger than 1 is never guessed.

export type Env = Readonly<Record<string, string | undefined>>;

export type Via =
  | 'ringwise'
  | 'torchrun'
  | 'env'
  | 'openmpi'
  | 'mvapich2'
  | 'slurm'
  | 'pals'
  | 'flux'
  | 'lsf-jsrun'
  | 'pmi';

/** Values that a launcher gives to one process. Null for values that it does not give. */
export interface Launched {
  /** The launcher that gave the values. */
  readonly via: Via;
  /** Rank of this process in the job. */
  readonly rank: number;
  /** Number of ranks of the job. */
  readonly size: number | null;
  /** Rank among the ranks of this host. */
  readonly localRank: number | null;
  /** Number of ranks on this host. */
  readonly localSize: number | null;
  /** Number of this host among those of the job. */
  readonly nodeRank: number | null;
  /** Number of restarts of the job so far. */
  readonly restart: number;
  /** Name or address of the host where the store is. */
  readonly masterHost: string | null;
  /** Port of the store. */
  readonly masterPort: number | null;
  /** True if the launcher already serves a store at the master's port: connect, never bind. */
  readonly isStoreServed: boolean;
}

/**
 * Returns the launcher's values, or null without a launcher. MASTER_ADDR and MASTER_PORT take precedence over
 * the launcher's own master.
 */
export function detectLauncher(env: Env): Launched | null {
  const found = torchrun(env) ?? openmpi(env) ?? mvapich2(env) ?? slurm(env) ?? others(env);
  if (found === null) return null;
  const master = masterOf(env);
  return {
    localRank: null,
    localSize: null,
    nodeRank: null,
    restart: 0,
    isStoreServed: false,
    ...found,
    masterHost: master.masterHost ?? found.masterHost ?? null,
    masterPort: master.masterPort ?? found.masterPort ?? null,
  };
}

/**
 * Returns the place of the store that MASTER_ADDR and MASTER_PORT name, null for what they do not. They also count
 * without a launcher, for programs that start ranks themselves and give each its rank.
 */
export function masterOf(env: Env): Pick<Launched, 'masterHost' | 'masterPort'> {
  return { masterHost: env.MASTER_ADDR || null, masterPort: whole(env.MASTER_PORT) };
}

type Row = Partial<Launched> & Pick<Launched, 'via' | 'rank' | 'size'>;

function torchrun(env: Env): Row | null {
  const rank = whole(env.RANK);
  const size = whole(env.WORLD_SIZE);
  if (rank === null || size === null) return null;
  return {
    via: env.RINGWISE_RUN_ID ? 'ringwise' : env.TORCHELASTIC_RUN_ID ? 'torchrun' : 'env',
    rank,
    size,
    localRank: whole(env.LOCAL_RANK),
    localSize: whole(env.LOCAL_WORLD_SIZE),
    nodeRank: whole(env.GROUP_RANK) ?? whole(env.NODE_RANK),
    restart: whole(env.TORCHELASTIC_RESTART_COUNT) ?? 0,
    isStoreServed: env.TORCHELASTIC_USE_AGENT_STORE === 'True',
  };
}

function openmpi(env: Env): Row | null {
  const row = prefixed(env, 'openmpi', 'OMPI_COMM_WORLD');
  if (row === null) return null;
  const host = /tcp:\/\/([^,:;]+)/.exec(env.OMPI_MCA_orte_hnp_uri ?? '')?.[1] ?? null;
  const job = whole(env.OMPI_MCA_ess_base_jobid);
  return { ...row, masterHost: host, masterPort: job === null ? null : portOfJob(job >>> 12) };
}

function mvapich2(env: Env): Row | null {
  return prefixed(env, 'mvapich2', 'MV2_COMM_WORLD');
}

function prefixed(env: Env, via: Via, prefix: string): Row | null {
  const rank = whole(env[`${prefix}_RANK`]);
  if (rank === null) return null;
  return {
    via,
    rank,
    size: whole(env[`${prefix}_SIZE`]),
    localRank: whole(env[`${prefix}_LOCAL_RANK`]),
    localSize: whole(env[`${prefix}_LOCAL_SIZE`]),
  };
}

// The body of an sbatch script and a salloc shell also have SLURM_PROCID, but only a job step has
// SLURM_STEP_ID. In a step smaller than the job, the variables without STEP describe the whole job.
function slurm(env: Env): Row | null {
  const rank = whole(env.SLURM_PROCID);
  if (rank === null || whole(env.SLURM_STEP_ID) === null) return null;
  const node = whole(env.SLURM_NODEID);
  const tasks = env.SLURM_STEP_TASKS_PER_NODE ?? env.SLURM_TASKS_PER_NODE;
  const job = whole(env.SLURM_JOB_ID);
  return {
    via: 'slurm',
    rank,
    size: whole(env.SLURM_STEP_NUM_TASKS) ?? whole(env.SLURM_NTASKS),
    localRank: whole(env.SLURM_LOCALID),
    localSize: tasks === undefined || node === null ? null : (tasksPerNode(tasks)[node] ?? null),
    nodeRank: node,
    masterHost: firstHost(env.SLURM_STEP_NODELIST ?? env.SLURM_NODELIST ?? ''),
    masterPort: job === null ? null : portOfJob(job),
  };
}

function others(env: Env): Row | null {
  const pals = whole(env.PALS_RANKID);
  if (pals !== null) {
    return {
      via: 'pals',
      rank: pals,
      size: whole(env.PMI_SIZE) ?? whole(env.PALS_SIZE),
      localRank: whole(env.PALS_LOCAL_RANKID),
      localSize: whole(env.PALS_LOCAL_SIZE),
    };
  }
  const flux = whole(env.FLUX_TASK_RANK);
  if (flux !== null) {
    return {
      via: 'flux',
      rank: flux,
      size: whole(env.FLUX_JOB_SIZE),
      localRank: whole(env.FLUX_TASK_LOCAL_ID),
    };
  }
  const jsrun = prefixed(env, 'lsf-jsrun', 'JSM_NAMESPACE');
  if (jsrun !== null) return { ...jsrun, localSize: null };
  const pmi = whole(env.PMI_RANK);
  if (pmi === null) return null;
  return {
    via: 'pmi',
    rank: pmi,
    size: whole(env.PMI_SIZE),
    localRank: whole(env.MPI_LOCALRANKID) ?? whole(env.PMI_LOCAL_RANK),
    localSize: whole(env.MPI_LOCALNRANKS) ?? whole(env.PMI_LOCAL_SIZE),
  };
}

function whole(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/**
 * Returns a port that is the same on all ranks of a job, above Linux's range of ephemeral ports. JAX uses the
 * same rule.
 */
function portOfJob(job: number): number {
  return 61440 + (job % 4096);
}

/** Returns the first host of a Slurm node list: "n01" for "n[01-12],x". */
function firstHost(list: string): string | null {
  const parts = /^([^[,]+)(?:\[(\d+))?/.exec(list);
  return parts === null ? null : `${parts[1]}${parts[2] ?? ''}`;
}

/** Expands Slurm's task counts: 2, 2, 2, 1 for "2(x3),1". */
function tasksPerNode(text: string): number[] {
  return text.split(',').flatMap((part) => {
    const [, tasks, times = '1'] = /^(\d+)(?:\(x(\d+)\))?$/.exec(part) ?? [];
    return tasks === undefined ? [] : new Array<number>(Number(times)).fill(Number(tasks));
  });
}
