// Runs the slots of an elastic job on one host: starts the process of a slot when ordered, and reports each end. Unlike
// the ranks of startJob(), a process that ends stops no other.

import { hostname } from 'node:os';
import { openLifeLine } from './life-line.ts';
import type { RankSpec } from './plan.ts';
import { type RankOptions, type RankOutcome, type RankProcess, startRank } from './rank-process.ts';

export interface SlotAgentOptions {
  /** Milliseconds from a stop to SIGKILL. */
  readonly shutdownTimeoutMs: number;
  /** Milliseconds from a signal of the user to SIGKILL, in which ranks finish their step and leave. */
  readonly graceMs: number;
  /** Called at once when a process has ended; `ending` is its exit code, or the name of the signal. */
  readonly onExit: (slot: number, incarnation: number, ending: string) => void;
  /** Called when the output of an ended process has been read. */
  readonly onEnded: (slot: number, incarnation: number, outcome: RankOutcome) => void;
}

export interface SlotAgent {
  /** Starts the process of a slot. If the agent is being stopped, reports its end instead. */
  readonly start: (spec: RankSpec, incarnation: number, options: RankOptions) => void;
  /** Kills the process of a slot if it is this incarnation. */
  readonly kill: (slot: number, incarnation: number) => void;
  /** Sends all processes this signal, and SIGKILL after the shutdown timeout; does nothing if they are stopping. */
  readonly stop: (signal: NodeJS.Signals) => void;
  /**
   * Forwards a signal of the user to all processes, and sends SIGKILL after the grace time. A second call kills them at
   * once.
   */
  readonly interrupt: (signal: NodeJS.Signals) => void;
  /** Resolves when no process is left. Call it after stop() or interrupt(). */
  readonly ended: () => Promise<void>;
  /** Ends the life-line's shell, which kills the ranks if this process dies. */
  readonly close: () => void;
}

interface Running {
  readonly incarnation: number;
  readonly process: RankProcess;
}

/** Opens the agent. Rejects with ERR_LAUNCH_NO_SHELL if there is no shell. */
export async function openSlotAgent(options: SlotAgentOptions): Promise<SlotAgent> {
  const { shutdownTimeoutMs, graceMs, onExit, onEnded } = options;
  const lifeLine = await openLifeLine();
  const running = new Map<number, Running>();
  const ends = new Set<Promise<void>>();
  let isStopping = false;
  let timer: NodeJS.Timeout | undefined;

  function signalAll(signal: NodeJS.Signals, patienceMs: number): void {
    isStopping = true;
    for (const { process } of running.values()) process.stop(signal);
    clearTimeout(timer);
    if (running.size > 0) timer = setTimeout(killAll, patienceMs);
  }

  function killAll(): void {
    for (const { process } of running.values()) process.stop('SIGKILL');
  }

  async function follow(slot: number, { incarnation, process }: Running): Promise<void> {
    const outcome = await process.outcome;
    running.delete(slot);
    if (running.size === 0) clearTimeout(timer);
    onEnded(slot, incarnation, outcome);
  }

  return {
    start: (spec, incarnation, rankOptions) => {
      // The coordinator sent this order before it got the report that this launcher stops.
      if (isStopping) {
        onEnded(spec.rank, incarnation, notStarted(spec.rank, rankOptions.host));
        return;
      }
      const hooks = { onExit: (ending: string) => onExit(spec.rank, incarnation, ending) };
      const process = startRank(spec, lifeLine, { ...rankOptions, ...hooks }, () => {});
      const own = { incarnation, process };
      running.set(spec.rank, own);
      const end = follow(spec.rank, own).finally(() => ends.delete(end));
      ends.add(end);
    },
    kill: (slot, incarnation) => {
      const own = running.get(slot);
      if (own?.incarnation === incarnation) own.process.stop('SIGKILL');
    },
    stop: (signal) => {
      if (!isStopping) signalAll(signal, shutdownTimeoutMs);
    },
    interrupt: (signal) => {
      if (isStopping) killAll();
      else signalAll(signal, graceMs);
    },
    ended: async () => {
      await Promise.all(ends);
    },
    close: () => lifeLine.close(),
  };
}

function notStarted(rank: number, host = hostname()): RankOutcome {
  const ended = { exitCode: null, signal: 'SIGTERM' as const, failedNs: null, lastWords: null };
  return { rank, host, pid: undefined, ...ended, tail: [], logFile: null };
}
