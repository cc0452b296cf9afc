// Turns options into the processes that a host starts. No side effects, so that every rule has a unit test.

import type { Program } from '../cli/program.ts';
import { badArgument, noGpu } from '../errors.ts';
import { ERROR_FILE } from '../report/error-file.ts';
import type { RankStreams } from '../report/output.ts';
import {
  firstStart,
  type JobFacts,
  ompThreads,
  type Placement,
  type Rendezvous,
  rankEnvironment,
  type SlotFacts,
  slotEnvironment,
  slotVariables,
} from './env.ts';

/** Number of cores and GPUs of this host. */
export interface Machine {
  readonly cores: number;
  readonly gpus: number;
}

/** Variables and streams of one local rank, in addition to those that all ranks get. */
export interface RankExtras {
  readonly env?: Readonly<Record<string, string>>;
  readonly streams?: RankStreams;
}

/** Processors and GPU of one rank; see placement.ts. */
export interface RankBinding {
  /** Command prefix that binds the rank to processors; may be empty. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** One process to start. */
export interface RankSpec extends Program {
  readonly rank: number;
  /** The error file that this launcher has given it; absent if it has none, or one of another launcher. */
  readonly errorFile?: string;
  /** Targets of its output. If absent, all output goes to the terminal. */
  readonly streams?: RankStreams;
}

/** A host's part of the job. */
export interface Share {
  readonly nproc: number;
  readonly firstRank: number;
  readonly worldSize: number;
  readonly groupRank: number;
  readonly groupWorldSize: number;
}

/** Returns the share of a job whose ranks all run on one host. */
export const wholeJob = (nproc: number): Share => ({
  nproc,
  firstRank: 0,
  worldSize: nproc,
  groupRank: 0,
  groupWorldSize: 1,
});

/**
 * Returns the number of ranks for `--nproc-per-node`: a number, cpu, gpu, or auto (the GPUs, else the cores).
 */
export function rankCount(command: string, text: string, machine: Machine): number {
  if (text === 'cpu') return machine.cores;
  if (text === 'auto') return machine.gpus || machine.cores;
  if (text === 'gpu') {
    if (machine.gpus === 0) throw noGpu(command);
    return machine.gpus;
  }
  if (!isRankCount(text)) throw badArgument(command, '--nproc-per-node', rankCountForm, text);
  return Number(text);
}

/** The values that rankCount() accepts, for error messages. */
export const rankCountForm = 'a whole number from 1 to 65536, auto, cpu or gpu';

export function isRankCount(text: string): boolean {
  if (['auto', 'cpu', 'gpu'].includes(text)) return true;
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_536;
}

/**
 * Returns the ranks of one host. `extras` returns the variables and streams of a local rank; `bindings` has the
 * processors and GPU of each local rank, or is empty.
 */
export function planRanks(
  share: Share,
  program: Program,
  rendezvous: Rendezvous,
  machine: Machine,
  facts: JobFacts = firstStart,
  extras: (localRank: number) => RankExtras = () => ({}),
  bindings: readonly RankBinding[] = [],
): RankSpec[] {
  const { nproc, firstRank, ...rest } = share;
  return Array.from({ length: nproc }, (_, localRank) => {
    const placement = { ...rest, rank: firstRank + localRank, localRank, localWorldSize: nproc };
    return planRank(placement, program, rendezvous, machine, facts, extras(localRank), bindings[localRank]);
  });
}

/**
 * Returns one rank. `own` has its processors and GPU, if it is bound. With the facts of a slot it is a rank of an
 * elastic job.
 */
export function planRank(
  placement: Placement,
  program: Program,
  rendezvous: Rendezvous,
  machine: Machine,
  facts: JobFacts,
  { env, streams }: RankExtras,
  own: RankBinding | undefined,
  slot: SlotFacts | null = null,
): RankSpec {
  const OMP_NUM_THREADS = program.env.OMP_NUM_THREADS ?? ompThreads(machine.cores, placement.localWorldSize);
  const contract = { ...rankEnvironment(placement, rendezvous, facts), ...(slot && slotEnvironment(slot)) };
  const inherited = { ...program.env };
  // This launcher may itself be a rank of an elastic job.
  for (const name of slotVariables) delete inherited[name];
  const errorFile = env?.[ERROR_FILE];
  return {
    ...program,
    command: [...(own?.command ?? []), ...program.command],
    rank: placement.rank,
    env: { ...inherited, OMP_NUM_THREADS, ...contract, ...own?.env, ...env },
    ...(errorFile !== undefined && { errorFile }),
    ...(streams && { streams }),
  };
}
