// One rank: a process that leads its own group, so that signals reach whatever it started, and a terminal's
// Ctrl-C reaches only the launcher. When the leader ends, the rest of its group is killed.

import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram } from '../cli/program.ts';
import type { Observe } from '../monitor/events.ts';
import { METRICS_FD } from '../monitor/rank-metrics.ts';
import { readReports } from '../monitor/read-reports.ts';
import { readErrorFile } from '../report/error-file.ts';
import { isSecondary, LAST_WORDS_FD, parseLastWords, reportError } from '../report/last-words.ts';
import { RankOutput, type RankStreams, type Write } from '../report/output.ts';
import type { LastWords } from '../report/words.ts';
import type { LifeLine } from './life-line.ts';
import { WATCHED_PARENT } from './parent-watch.ts';
import type { RankSpec } from './plan.ts';

const wordsFd = 3;
const metricsFd = 4;
/** How long the pipes of an ended rank are read on: a process that left its group may hold them open for ever. */
const drainMs = 500;
/** How long a failed rank's last words are waited for. They are in the pipe when it ends. */
const wordsMs = 200;
/** How often a rank that is to end is woken, in case that it was stopped meanwhile. */
const wakeMs = 1_000;

export interface RankOptions {
  /** Receives the prefixed lines; without it the rank writes to this process's stdout and stderr directly. */
  readonly write?: Write;
  /** How reports call this host. Default: its host name. */
  readonly host?: string;
  /** Told of all that becomes known of the rank; given, the rank can report metrics. */
  readonly observe?: Observe;
  /** Given, the rank has a message channel, and its process is handed over as soon as it runs. */
  readonly connect?: (rank: number, child: ChildProcess) => void;
}

/** How a rank ended. */
export interface RankOutcome {
  readonly rank: number;
  readonly host: string;
  /** Undefined if it could not be started. */
  readonly pid: number | undefined;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** When it failed, on the clock of process.hrtime; null if it ended well or only obeyed a stop. */
  readonly failedNs: bigint | null;
  readonly lastWords: LastWords | null;
  /** Its last lines of output. */
  readonly tail: readonly string[];
  /** Where its output went besides, if anywhere. */
  readonly logFile: string | null;
}

export interface RankProcess {
  /** Undefined if it could not be started. */
  readonly pid: number | undefined;
  /** Never rejects. */
  readonly outcome: Promise<RankOutcome>;
  /** Signals the whole group; an end after that is no failure. Does nothing once the rank has ended. */
  readonly stop: (signal: NodeJS.Signals) => void;
}

/** `onFailure` is called as soon as the rank fails by itself; its outcome waits until its output has been read. */
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
    // Most failures to start arrive as an event; without memory for a process, spawn throws.
    return neverStarted(spec.rank, Promise.resolve(error), onFailure);
  }
  const { pid } = child;
  if (pid === undefined) {
    const failure = new Promise((resolve) => child.once('error', resolve));
    return neverStarted(spec.rank, failure, onFailure);
  }
  lifeLine.add(pid);
  const words = readWords(child);
  options.observe?.({ kind: 'started', rank: spec.rank, host: options.host ?? hostname(), pid });
  let stoppedNs: bigint | null = null;
  let hasEnded = false;
  let waking: NodeJS.Timeout | undefined;
  child.once('exit', (exitCode) => {
    hasEnded = true;
    clearInterval(waking);
    signalGroup(pid, 'SIGKILL');
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
      signalGroup(pid, signal);
      // A process that is stopped (SIGSTOP) takes a signal only when it continues; others ignore this.
      signalGroup(pid, 'SIGCONT');
      waking ??= setInterval(() => signalGroup(pid, 'SIGCONT'), wakeMs);
    },
  };
}

function spawnRank(
  spec: RankSpec,
  diesWithParent: readonly string[],
  { write, connect, observe }: RankOptions,
): ChildProcess {
  const output = write ? 'pipe' : 'inherit';
  const stdio: StdioOptions = ['ignore', output, output, 'pipe', observe ? 'pipe' : 'ignore'];
  if (connect) stdio.push('ipc');
  // Without the program itself, spawn() must be what fails: it says so best.
  const prefix = findProgram(spec.command[0]!, spec.env) === null ? [] : diesWithParent;
  const [command, ...args] = [...prefix, ...spec.command] as [string, ...string[]];
  const mustWatch = spec.isNode && prefix.length === 0;
  return spawn(command, [...args, ...spec.args], {
    env: {
      ...spec.env,
      ...(spec.isNode && { [LAST_WORDS_FD]: `${wordsFd}` }),
      ...(mustWatch && { [WATCHED_PARENT]: `${process.pid}` }),
      ...(observe && { [METRICS_FD]: `${metricsFd}` }),
    },
    stdio,
    detached: true,
    serialization: 'advanced',
  });
}

interface Words {
  readonly text: () => string;
  readonly ended: Promise<unknown>;
}

function readWords(child: ChildProcess): Words {
  let said = '';
  const pipe = child.stdio[wordsFd] as Readable;
  pipe.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  return { text: () => said, ended: new Promise((resolve) => pipe.once('close', resolve)) };
}

/** Reads what the rank says until it has ended. */
async function follow(
  spec: RankSpec,
  child: ChildProcess,
  { write, observe, host = hostname() }: RankOptions,
  words: Words,
  stoppedNs: () => bigint | null,
): Promise<RankOutcome> {
  const { rank, streams } = spec;
  const output = write
    ? new RankOutput(rank, write, (text) => observe?.({ kind: 'line', rank, text }))
    : null;
  if (observe) readReports(child.stdio[metricsFd] as Readable, rank, observe);
  const closeFiles = output ? copyStreams(output, child, streams) : () => {};
  const closed = once(child, 'close');
  const disconnected = child.connected ? once(child, 'disconnect') : null;
  const [exitCode, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  const endedNs = process.hrtime.bigint();
  await Promise.race([closed, idle(output)]);
  // Only the rank itself held the other end of its channel, so this comes, after the last message.
  await disconnected;
  for (const stream of child.stdio) stream?.destroy();
  closeFiles();

  const lastWords = parseLastWords(words.text()) ?? readErrorFile(spec.env.TORCHELASTIC_ERROR_FILE, endedNs);
  const sinceNs = lastWords?.timeNs ?? endedNs;
  const stopNs = stoppedNs();
  const failed = exitCode !== 0 && (stopNs === null || sinceNs < stopNs);
  const failedNs = failed ? sinceNs : null;
  observe?.({ kind: 'ended', rank, exitCode, signal, hasFailed: failed });
  const logFile = streams?.stderr.file ?? streams?.stdout.file ?? null;
  const tail = output?.tail ?? [];
  return { rank, host, pid: child.pid, exitCode, signal, failedNs, lastWords, tail, logFile };
}

/** Returns what closes the files that it has opened. */
function copyStreams(output: RankOutput, child: ChildProcess, streams: RankStreams | undefined): () => void {
  const files: number[] = [];
  for (const name of ['stdout', 'stderr'] as const) {
    const { file = null, isShown = true } = streams?.[name] ?? {};
    const fd = file === null ? null : openSync(file, 'a');
    if (fd !== null) files.push(fd);
    output.copy(child[name]!, name, fd, isShown);
  }
  return () => {
    for (const fd of files) closeSync(fd);
  };
}

/** Resolves when the pipes of an ended rank have given nothing for drainMs, although they were read. */
async function idle(output: RankOutput | null): Promise<void> {
  do {
    await delay(drainMs, undefined, { ref: false });
  } while (output && !output.isIdle(drainMs));
}

/** A rank of which there is only the error. */
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

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone; on macOS also while its last member is a zombie.
  }
}
