// What `ringwise run` was asked for, after checking. args.ts makes it.

import { loopbackAddress } from '@ringwise/store';
import type { BindingKind } from '../agent/binding.ts';

/** Where the launchers of a job meet. */
export interface MeetingOptions {
  readonly backend: 'static' | 'c10d';
  /** How many hosts are enough to start, and how many there may be. */
  readonly minNodes: number;
  readonly maxNodes: number;
  /** Static only. */
  readonly nodeRank: number;
  /** Of the store. Port 0 takes a free one, on one host only. */
  readonly host: string;
  readonly port: number;
  /** c10d: whether this host keeps the store; null: if the address is its own. */
  readonly isHost: boolean | null;
  /** How this host is called in reports; undefined: its host name. */
  readonly localName: string | undefined;
  /** Deadline for minNodes hosts to come. */
  readonly joinTimeoutMs: number;
  /** How long more hosts are waited for when minNodes are there. */
  readonly lastCallMs: number;
  /** A host that misses `keepAliveAttempts` signs of life in a row is given up. */
  readonly keepAliveMs: number;
  readonly keepAliveAttempts: number;
}

export type Stream = 'stdout' | 'stderr';

/** Where the output of a host's ranks goes, besides to the terminal. */
export interface OutputOptions {
  readonly logDir: string | undefined;
  /** Streams of a local rank that go to a file only, and to a file and the terminal. */
  readonly redirects: (localRank: number) => readonly Stream[];
  readonly tee: (localRank: number) => readonly Stream[];
  /** Local ranks that reach the terminal; null: all. */
  readonly localRanks: ReadonlySet<number> | null;
}

/** Who looks at the job besides the terminal. Only the launcher that keeps the store does anything about it. */
export interface LiveOptions {
  /** Where the live page is served; null: nowhere. Port 0 takes a free one. */
  readonly ui: { readonly host: string; readonly port: number } | null;
  /** Gets the reports of all ranks as lines of JSON. */
  readonly metricsFile: string | null;
  /** Gets a folder of TensorBoard event files for each rank. */
  readonly tensorboardDir: string | null;
}

export interface RunOptions {
  readonly script: string;
  readonly scriptArgs: readonly string[];
  /** The script is a program, not a file for an interpreter. */
  readonly isProgram: boolean;
  /** As given: a number or auto, cpu, gpu. */
  readonly nprocPerNode: string;
  readonly role: string;
  readonly meeting: MeetingOptions;
  /** Undefined: make one up. */
  readonly runId: string | undefined;
  readonly maxRestarts: number;
  readonly shutdownTimeoutMs: number;
  readonly signals: readonly NodeJS.Signals[];
  readonly output: OutputOptions;
  readonly live: LiveOptions;
  readonly isDryRun: boolean;
  /** Null: ranks run wherever the system puts them. */
  readonly binding: BindingKind | null;
  /** Each rank sees only its own GPU, as number 0. */
  readonly isLocalRankVirtual: boolean;
}

/** One host and a free port. */
export const oneHost: MeetingOptions = {
  backend: 'static',
  minNodes: 1,
  maxNodes: 1,
  nodeRank: 0,
  host: loopbackAddress(),
  port: 0,
  isHost: null,
  localName: undefined,
  joinTimeoutMs: 600_000,
  lastCallMs: 30_000,
  keepAliveMs: 500,
  keepAliveAttempts: 5,
};

const nothing = () => [];

/** All lines to the terminal. */
export const toTerminal: OutputOptions = {
  logDir: undefined,
  redirects: nothing,
  tee: nothing,
  localRanks: null,
};

export const unwatched: LiveOptions = { ui: null, metricsFile: null, tensorboardDir: null };

export const defaultSignals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'];
