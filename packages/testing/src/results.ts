// What startRanks() reports of each rank's process.

/** An error that has passed between processes: its text, stack and own enumerable fields. */
export interface RankError {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  readonly code?: unknown;
  readonly cause?: unknown;
  readonly [field: string]: unknown;
}

export interface RankResult {
  readonly rank: number;
  readonly pid: number;
  /**
   * ok: the function returned and the process ended by itself with exit code 0. error: the function threw. exited: the
   * process ended before the function settled, or not with exit code 0 after it returned. timed-out: the process was
   * killed at the time limit.
   */
  readonly status: 'ok' | 'error' | 'exited' | 'timed-out';
  /** The value that the function returned, by structured clone. Present if it returned, whatever the status. */
  readonly value?: unknown;
  readonly error?: RankError;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Time on the caller's performance.now() clock at which the function returned or threw, or the process ended. */
  readonly endedAtMs: number;
}

/** Returns the values of all ranks, in rank order. Throws one error with the output of each failed rank. */
export function values<T = unknown>(results: readonly RankResult[]): T[] {
  const failed = results.filter((result) => result.status !== 'ok');
  if (failed.length > 0) {
    throw new Error(
      `${failed.length} of ${results.length} ranks failed.\n${failed.map(described).join('\n')}`,
    );
  }
  return results.map((result) => result.value as T);
}

function described({ rank, pid, status, error, exitCode, signal, stderr }: RankResult): string {
  const end = signal === null ? `exit code ${exitCode}` : signal;
  const lines = [`rank ${rank} (pid ${pid}): ${status}, ${end}`, error?.stack ?? '', stderr.trimEnd()];
  return lines.filter((line) => line !== '').join('\n');
}
