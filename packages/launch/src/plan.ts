// Options to processes: which ranks a host starts, and with what. Pure, so that every rule is a unit test.

import { ompThreads, type Rendezvous, rankEnvironment } from './env.ts';
import { badArgument, noGpu } from './errors.ts';

/** What this host has. */
export interface Machine {
  readonly cores: number;
  readonly gpus: number;
}

/** What to run on every rank. */
export interface Program {
  /** Flags of node itself. */
  readonly execArgv: readonly string[];
  readonly file: string;
  readonly args: readonly string[];
  /** Variables below the contract's own; OMP_NUM_THREADS is added if absent. */
  readonly env: NodeJS.ProcessEnv;
}

/** One process to start. */
export interface RankSpec extends Program {
  readonly rank: number;
}

/** How many ranks `--nproc-per-node` means here: a number, cpu, gpu, or auto (the GPUs, else the cores). */
export function rankCount(command: string, text: string, machine: Machine): number {
  if (text === 'cpu') return machine.cores;
  if (text === 'auto') return machine.gpus || machine.cores;
  if (text === 'gpu') {
    if (machine.gpus === 0) throw noGpu(command);
    return machine.gpus;
  }
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > 65536) {
    throw badArgument(command, '--nproc-per-node', 'a whole number from 1 to 65536, auto, cpu or gpu', text);
  }
  return count;
}

/** The ranks of a job on one host. */
export function planRanks(
  nproc: number,
  program: Program,
  rendezvous: Rendezvous,
  machine: Machine,
): RankSpec[] {
  const OMP_NUM_THREADS = program.env.OMP_NUM_THREADS ?? ompThreads(machine.cores, nproc);
  return Array.from({ length: nproc }, (_, rank) => {
    const place = {
      rank,
      localRank: rank,
      worldSize: nproc,
      localWorldSize: nproc,
      groupRank: 0,
      groupWorldSize: 1,
    };
    return {
      ...program,
      rank,
      env: { ...program.env, OMP_NUM_THREADS, ...rankEnvironment(place, rendezvous) },
    };
  });
}
