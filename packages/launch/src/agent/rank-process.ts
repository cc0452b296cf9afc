// Runs one rank as a process that leads its own process group. So signals also reach the processes that it has started,
// and Ctrl-C in a terminal reaches only the launcher. When the leader ends, the rest of its group is killed. For
// Windows see process-groups.ts.

import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram } from '../cli/program.ts';
import type { Observe } from '../monitor/events.ts';
import { METRICS_FD } from '../monitor/rank-metrics.ts';
import { PROGRESS } from '../monitor/rank-progress.ts';
import { readReports } from '../monitor/read-reports.ts';
import { readErrorFile } from '../report/error-file.ts';
import { failureOf } from '../report/failure.ts';
import {
  isSecondary,
  joinedWords,
  LAST_WORDS_FD,
  parseLastWords,
  reportError,
} from '../report/last-words.ts';
import { LogFile } from '../report/log-file.ts';
import { RankOutput, type RankStreams, type Write } from '../report/output.ts';
import type { LastWords } from '../report/words.ts';
import { LAUNCHER_LINE_FD } from './launcher-line.ts';
import type { LifeLine } from './life-line.ts';
import { WATCHED_PARENT } from './parent-watch.ts';
import type { RankSpec } from './plan.ts';
import { hasProcessGroups, signalGroup, signalProcess } from './process-groups.ts';
import { realTimeSignalOf } from './real-time-signal.ts';

const wordsFd = 3;
const metricsFd = 4;
const lineFd = 5;
/**
 * Milliseconds for which the pipes of an ended rank are still read. A process that left its group may keep them open
 * forever.
 */
const drainMs = 500;
/** Milliseconds to wait for a failed rank's last words, which are in the pipe when it ends. */
const wordsMs = 200;
/**
 * Milliseconds between SIGCONT signals to a rank that must end, because it may have been stopped (SIGSTOP) meanwhile.
 */
const wakeMs = 1_000;

export interface RankOptions {
  /** Receives the prefixed lines; without it the rank writes to this process's stdout and stderr directly. */
  readonly write?: Write;
  /** Prints a warning for the user. */
  readonly warn?: (text: string) => void;
  /** Name of this host in reports. Default: its host name. */
  readonly host?: string;
  /** Receives the rank's output, metrics and end. Only with it, the rank can report metrics. */
  readonly observe?: Observe;
  /** Receives the progress of rank 0 for the status line, if there is one. */
  readonly showProgress?: (text: string) => void;
  /** Called at once when the rank's process has ended, with its exit code or the name of the signal, as text. */
  readonly onExit?: (ending: string) => void;
  /** Receives the rank's process as soon as it runs. With it, the process has a message channel (IPC). */
  readonly connect?: (rank: number, child: ChildProcess) => void;
}

/** The outcome of a rank that has ended. */
export interface RankOutcome {
  readonly rank: number;
  readonly host: string;
  /** Undefined if it could not be started. */
  readonly pid: number | undefined;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Time of the failure on the clock of process.hrtime; null if it succeeded or ended because it was stopped. */
  readonly failedNs: bigint | null;
  readonly lastWords: LastWords | null;
  /** The last lines of its output. */
  readonly tail: readonly string[];
  /** The file to which its output was copied; null if there is none. */
  readonly logFile: string | null;
}

export interface RankProcess {
  /** Undefined if it could not be started. */
  readonly pid: number | undefined;
  /** Never rejects. */
  readonly outcome: Promise<RankOutcome>;
  /**
   * Signals the whole process group. If the rank ends after that, it counts as failed only if it reported its error
   * before. Does nothing once the rank has ended.
   */
  readonly stop: (signal: NodeJS.Signals) => void;
}

/**
 * Starts a rank. Calls `onFailure` as soon as the rank fails without having been stopped; the outcome
 * resolves later, when its output has been read.
 */
export function startRank(
  spec: RankSpec,
  lifeLine: LifeLine,
  options: RankOptions,
  onFailure: (isSecondary: boolean) => void,
): RankProcess {
  let child: ChildProcess;
  try {
    child = spawnRank(spec, lifeLine.command, options);
  } catch (error) {
    // Most failures to start are reported by an event, but spawn throws if there is no memory for a process.
    return neverStarted(spec.rank, Promise.resolve(error), onFailure);
  }
  const { pid } = child;
  if (pid === undefined) {
    const failure = new Promise((resolve) => child.once('error', resolve));
    return neverStarted(spec.rank, failure, onFailure);
  }
  lifeLine.add(pid);
  const hasGroup = hasProcessGroups();
  const line = (child.stdio as (Writable | null)[])[lineFd] ?? undefined;
  const send = hasGroup ? signalGroup(pid) : signalProcess(child, spec.isNode ? line : undefined);
  const words = readWords(child, pid);
  options.observe?.({ kind: 'started', rank: spec.rank, host: options.host ?? hostname(), pid });
  let stoppedNs: bigint | null = null;
  let hasEnded = false;
  let waking: NodeJS.Timeout | undefined;
  child.once('exit', (code, signal) => {
    const exitCode = words.exitCode(code);
    hasEnded = true;
    options.onExit?.(signal ?? `${exitCode}`);
    clearInterval(waking);
    if (hasGroup) send('SIGKILL');
    lifeLine.remove(pid);
    if (exitCode === 0 || stoppedNs !== null) return;
    void Promise.race([words.ended, delay(wordsMs, undefined, { ref: false })]).then(() => {
      const said = parseLastWords(words.text());
      onFailure(said !== null && isSecondary(said.error));
    });
  });
  options.connect?.(spec.rank, child);
  return {
    pid,
    outcome: follow(spec, child, options, words, () => stoppedNs),
    stop: (signal) => {
      if (hasEnded) return;
      stoppedNs ??= process.hrtime.bigint();
      send(signal);
      // A stopped process (SIGSTOP) handles signals only after SIGCONT, which running processes ignore.
      send('SIGCONT');
      waking ??= setInterval(() => send('SIGCONT'), wakeMs);
    },
  };
}

function spawnRank(
  spec: RankSpec,
  diesWithParent: readonly string[],
  { write, connect, observe, showProgress }: RankOptions,
): ChildProcess {
  const output = write ? 'pipe' : 'inherit';
  const hasGroup = hasProcessGroups();
  const hasLine = spec.isNode && !hasGroup;
  const stdio: StdioOptions = ['ignore', output, output, 'pipe', observe ? 'pipe' : 'ignore'];
  stdio.push(hasLine ? 'pipe' : 'ignore');
  if (connect) stdio.push('ipc');
  // If the program does not exist, spawn() itself must fail, because its error is the clearest.
  const prefix = findProgram(spec.command[0]!, spec.env) === null ? [] : diesWithParent;
  const [command, ...args] = [...prefix, ...spec.command] as [string, ...string[]];
  const mustWatch = spec.isNode && prefix.length === 0 && hasGroup;
  return spawn(command, [...args, ...spec.args], {
    env: {
      ...spec.env,
      ...(spec.isNode && { [LAST_WORDS_FD]: `${wordsFd}` }),
      ...(mustWatch && { [WATCHED_PARENT]: `${process.pid}` }),
      ...(observe && { [METRICS_FD]: `${metricsFd}` }),
      ...(write && spec.isNode && spec.rank === 0 && { [PROGRESS]: showProgress ? 'live' : 'lines' }),
      ...(hasLine && { [LAUNCHER_LINE_FD]: `${lineFd}` }),
    },
    stdio,
    // On Windows, a detached process has a window of its own and outlives this one.
    detached: hasGroup,
    windowsHide: true,
    serialization: 'advanced',
  });
}

interface Words {
  readonly text: () => string;
  readonly ended: Promise<unknown>;
  /** Returns the exit code of the rank: the given one or, after a real-time signal, 128 + its number. */
  readonly exitCode: (reported: number | null) => number | null;
}

function readWords(child: ChildProcess, pid: number): Words {
  let said = '';
  let realTime: number | null = null;
  const pipe = child.stdio[wordsFd] as Readable;
  pipe
    .setEncoding('utf8')
    .on('data', (text: string) => {
      said = joinedWords(said, text);
    })
    .once('end', () => {
      realTime = realTimeSignalOf(pid);
    });
  return {
    text: () => said,
    ended: new Promise((resolve) => pipe.once('close', resolve)),
    exitCode: (reported) => (reported === 0 && realTime !== null ? 128 + realTime : reported),
  };
}

/** Reads the rank's pipes until it has ended, and returns its outcome. */
async function follow(
  spec: RankSpec,
  child: ChildProcess,
  { write, observe, showProgress, warn = () => {}, host = hostname() }: RankOptions,
  words: Words,
  stoppedNs: () => bigint | null,
): Promise<RankOutcome> {
  const { rank, streams } = spec;
  const output = write
    ? new RankOutput(rank, write, (text) => observe?.({ kind: 'line', rank, text }))
    : null;
  if (observe) readReports(child.stdio[metricsFd] as Readable, rank, observe, showProgress);
  const closeFiles = output ? copyStreams(output, child, streams, warn) : () => {};
  const closed = once(child, 'close');
  const disconnected = child.connected ? once(child, 'disconnect') : null;
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  const exitCode = words.exitCode(code);
  const endedNs = process.hrtime.bigint();
  await Promise.race([closed, idle(output)]);
  // Only the rank itself held the other end of the channel, so the disconnect arrives, after the last message.
  await disconnected;
  for (const stream of child.stdio) stream?.destroy();
  closeFiles();

  const said = parseLastWords(words.text()) ?? readErrorFile(spec.errorFile, endedNs);
  const end = { exitCode, signal, endedNs, stoppedNs: stoppedNs(), lastWords: said };
  const { failedNs, lastWords } = failureOf(end);
  observe?.({ kind: 'ended', rank, exitCode, signal, hasFailed: failedNs !== null });
  const logFile = streams?.stderr.file ?? streams?.stdout.file ?? null;
  const tail = output?.tail ?? [];
  return { rank, host, pid: child.pid, exitCode, signal, failedNs, lastWords, tail, logFile };
}

/** Copies the rank's output to its files and to `output`. Returns a function that closes the files. */
function copyStreams(
  output: RankOutput,
  child: ChildProcess,
  streams: RankStreams | undefined,
  warn: (text: string) => void,
): () => void {
  const files: LogFile[] = [];
  for (const name of ['stdout', 'stderr'] as const) {
    const { file: path = null, isShown = true } = streams?.[name] ?? {};
    const file = path === null ? null : new LogFile(path, warn);
    if (file !== null) files.push(file);
    output.copy(child[name]!, name, file, isShown);
  }
  return () => {
    for (const file of files) file.close();
  };
}

/** Resolves when the pipes of an ended rank have been read for drainMs without being held up by the terminal. */
async function idle(output: RankOutput | null): Promise<void> {
  do {
    await delay(drainMs, undefined, { ref: false });
  } while (output && !output.isIdle(drainMs));
}

/** Returns a rank that could not be started because of `failure`. */
export function neverStarted(
  rank: number,
  failure: Promise<unknown>,
  onFailure: (isSecondary: boolean) => void,
): RankProcess {
  const outcome = failure.then((error): RankOutcome => {
    onFailure(false);
    const timeNs = process.hrtime.bigint();
    const lastWords = { timeNs, error: reportError(error) };
    const host = hostname();
    const ended = { exitCode: null, signal: null, failedNs: timeNs };
    return { rank, host, pid: undefined, ...ended, lastWords, tail: [], logFile: null };
  });
  return { pid: undefined, outcome, stop: () => {} };
}
