// The checked options of `ringwise run`, which args.ts parses.

import { loopbackAddress } from '@ringwise/store';
import type { BindingKind } from '../agent/binding.ts';
import type { ElasticLimits } from '../rendezvous/elastic/elastic-coordinator.ts';

/** The rendezvous of a job's launchers. */
export interface MeetingOptions {
  readonly backend: 'static' | 'c10d';
  /** Minimum number of hosts to start with, and maximum number of hosts. */
  readonly minNodes: number;
  readonly maxNodes: number;
  /** Index of this host; for the static backend only. */
  readonly nodeRank: number;
  /** Address of the store. Port 0 picks a free port, with one host only. */
  readonly host: string;
  readonly port: number;
  /**
   * Whether this host keeps the store. Null: host 0 does (static), or the first that can listen on the address (c10d).
   */
  readonly isHost: boolean | null;
  /** Name of this host in reports; undefined for its host name. */
  readonly localName: string | undefined;
  /** Time in milliseconds that minNodes hosts have to join. */
  readonly joinTimeoutMs: number;
  /** Time in milliseconds to wait for more hosts once minNodes have joined. */
  readonly lastCallMs: number;
  /**
   * A host that misses `keepAliveAttempts` keep-alive signals in a row, one per `keepAliveMs`, counts as
   * lost.
   */
  readonly keepAliveMs: number;
  readonly keepAliveAttempts: number;
}

export type Stream = 'stdout' | 'stderr';

/** Targets of the output of a host's ranks. */
export interface OutputOptions {
  readonly logDir: string | undefined;
  /** Streams of a local rank that go only to a file (`redirects`), or to a file and the terminal (`tee`). */
  readonly redirects: (localRank: number) => readonly Stream[];
  readonly tee: (localRank: number) => readonly Stream[];
  /** Local ranks whose output is shown on the terminal; null for all. */
  readonly localRanks: ReadonlySet<number> | null;
}

/** Ways to watch the job besides the terminal. Only the launcher that keeps the store provides them. */
export interface LiveOptions {
  /** Address of the live page; null for none. Port 0 picks a free port. */
  readonly ui: { readonly host: string; readonly port: number } | null;
  /** Whether the page stays after the job, until the launcher gets a signal. */
  readonly isUiKept: boolean;
  /** HTML file to which the page is written with all data that it shows; null for none. */
  readonly reportFile: string | null;
  /** File to which the reports of all ranks are appended as lines of JSON; null for none. */
  readonly metricsFile: string | null;
  /** Folder with a subfolder of TensorBoard event files for each rank; null for none. */
  readonly tensorboardDir: string | null;
}

export interface RunOptions {
  readonly script: string;
  readonly scriptArgs: readonly string[];
  /** Whether the script is a program instead of a file for an interpreter. */
  readonly isProgram: boolean;
  /** Value as given: a number or auto, cpu, gpu. */
  readonly nprocPerNode: string;
  readonly role: string;
  readonly meeting: MeetingOptions;
  /** Undefined to generate one. */
  readonly runId: string | undefined;
  /** Limits of the number of ranks in elastic mode; null if a lost rank stops all. */
  readonly elastic: ElasticLimits | null;
  /** Maximum number of restarts of all ranks; in elastic mode, of each rank. */
  readonly maxRestarts: number;
  /** Time in milliseconds that ranks of an elastic job have to leave after a signal to their launcher. */
  readonly graceMs: number;
  readonly shutdownTimeoutMs: number;
  readonly signals: readonly NodeJS.Signals[];
  readonly output: OutputOptions;
  readonly live: LiveOptions;
  readonly isDryRun: boolean;
  /** Null if ranks are not bound to processors. */
  readonly binding: BindingKind | null;
  /** Whether each rank sees only its own GPU, as number 0. */
  readonly isLocalRankVirtual: boolean;
}

/** Options for one host and a free port. */
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

/** Options that show all lines on the terminal. */
export const toTerminal: OutputOptions = {
  logDir: undefined,
  redirects: nothing,
  tee: nothing,
  localRanks: null,
};

export const unwatched: LiveOptions = {
  ui: null,
  isUiKept: false,
  reportFile: null,
  metricsFile: null,
  tensorboardDir: null,
};

export const defaultSignals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'];
