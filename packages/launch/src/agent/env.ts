// The environment variables of every rank. They have torchrun's names, so that a script for either launcher
// reads the same variables. With RINGWISE_SECRET the rank proves to the store that it belongs to the job.

/** Position of one rank in its job. A group is one launcher, that is, one host. */
export interface Placement {
  readonly rank: number;
  readonly localRank: number;
  readonly worldSize: number;
  readonly localWorldSize: number;
  readonly groupRank: number;
  readonly groupWorldSize: number;
}

/**
 * The rendezvous that all ranks of a job share. The store listens on masterAddr:masterPort; ranks connect to it and
 * never bind it.
 */
export interface Rendezvous {
  readonly runId: string;
  readonly masterAddr: string;
  readonly masterPort: number;
  /** Secret of the store. Empty if the store requires none; it is then open to this host only. */
  readonly secret: string;
}

/** Facts about the run that each rank gets as variables. */
export interface JobFacts {
  readonly role: string;
  /**
   * Number of times that all ranks have been started again, for any reason. init() puts it into its keys in
   * the store, so that rounds do not mix.
   */
  readonly restartCount: number;
  readonly maxRestarts: number;
}

/** Further facts about a rank of an elastic job: its slot, and the number of earlier starts of the slot. */
export interface SlotFacts {
  readonly slot: number;
  readonly incarnation: number;
  /** The minimum number of ranks with which the job continues. */
  readonly minRanks: number;
  /** Address of this launcher's standby store; null if the job has one host only. */
  readonly standby: string | null;
}

export const firstStart: JobFacts = { role: 'default', restartCount: 0, maxRestarts: 0 };

/** Returns the environment variables of one rank. */
export function rankEnvironment(
  placement: Placement,
  rendezvous: Rendezvous,
  facts: JobFacts,
): Record<string, string> {
  return {
    RANK: `${placement.rank}`,
    LOCAL_RANK: `${placement.localRank}`,
    WORLD_SIZE: `${placement.worldSize}`,
    LOCAL_WORLD_SIZE: `${placement.localWorldSize}`,
    GROUP_RANK: `${placement.groupRank}`,
    GROUP_WORLD_SIZE: `${placement.groupWorldSize}`,
    ROLE_NAME: facts.role,
    ROLE_RANK: `${placement.rank}`,
    ROLE_WORLD_SIZE: `${placement.worldSize}`,
    MASTER_ADDR: rendezvous.masterAddr,
    MASTER_PORT: `${rendezvous.masterPort}`,
    TORCHELASTIC_RUN_ID: rendezvous.runId,
    TORCHELASTIC_RESTART_COUNT: `${facts.restartCount}`,
    TORCHELASTIC_MAX_RESTARTS: `${facts.maxRestarts}`,
    TORCHELASTIC_USE_AGENT_STORE: 'True',
    RINGWISE_RUN_ID: rendezvous.runId,
    RINGWISE_SECRET: rendezvous.secret,
  };
}

/**
 * Returns the threads per rank for OpenMP and libraries that read its variable: an equal share of the host's
 * cores.
 */
export function ompThreads(cores: number, nproc: number): string {
  return `${Math.max(1, Math.floor(cores / nproc))}`;
}

/** Names of the variables of slotEnvironment(). */
export const slotVariables = [
  'RINGWISE_SLOT',
  'RINGWISE_INCARNATION',
  'RINGWISE_MIN_RANKS',
  'RINGWISE_STANDBY',
] as const;

/** Returns the environment variables that a rank of an elastic job has besides those of rankEnvironment(). */
export function slotEnvironment(facts: SlotFacts): Record<string, string> {
  const { slot, incarnation, minRanks, standby } = facts;
  const [number, starts, min, ready] = slotVariables;
  const own = { [number]: `${slot}`, [starts]: `${incarnation}`, [min]: `${minRanks}` };
  return standby === null ? own : { ...own, [ready]: standby };
}
