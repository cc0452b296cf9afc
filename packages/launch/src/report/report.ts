// Which rank is to blame, and the block that says so. The first failure that is not secondary is the root cause;
// the clock is the host's monotonic one, read in the rank when it caught the error, else here when it ended.

import { constants } from 'node:os';
import { isAbsolute, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RankOutcome } from '../agent/rank-process.ts';
import { isSecondary } from './last-words.ts';
import type { ReportedError } from './words.ts';

/** Without last words the output is the only witness; its end is enough, the whole has been on the terminal. */
const reportedLines = 10;
/** What to do about errors whose own words do not say it. */
const remedies: Readonly<Record<string, string>> = {
  ERR_REQUIRE_ASYNC_MODULE:
    'Top-level await needs an ES module: name the script .mts, or put "type": "module" into its package.json.',
};
/** Of a native stack. */
const reportedFrames = 12;

/** The rank that failed first on its own account; else the first that failed; null if none did. */
export function rootCause(outcomes: readonly RankOutcome[]): RankOutcome | null {
  const failed = outcomes
    .filter((outcome) => outcome.failedNs !== null)
    .sort((a, b) => (a.failedNs! < b.failedNs! ? -1 : 1));
  return failed.find(({ lastWords }) => !lastWords || !isSecondary(lastWords.error)) ?? failed[0] ?? null;
}

/** The launcher's exit code for a root cause: its own, or 128 + the number of a signal. */
export function exitCodeOf(root: RankOutcome): number {
  return root.signal ? exitCodeOfSignal(root.signal) : (root.exitCode ?? 1);
}

export const exitCodeOfSignal = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/** The root-cause block, without a final line break. */
export function failureReport(
  outcomes: readonly RankOutcome[],
  startedNs: bigint,
  root: RankOutcome,
): string {
  const seconds = (Number(root.failedNs! - startedNs) / 1e9).toFixed(1);
  const stopped = outcomes.filter(
    (outcome) => outcome !== root && outcome.failedNs === null && outcome.exitCode !== 0,
  );
  const lines = [
    `rank ${root.rank} of ${outcomes.length} failed (${ending(root)}) after ${seconds} s` +
      `${stopped.length ? `; ${ranksOf(stopped)} ${stopped.length > 1 ? 'were' : 'was'} stopped` : ''}.`,
  ];
  if (root.lastWords) lines.push(...errorLines(root.lastWords.error));
  if (root.signal === 'SIGKILL') {
    lines.push('  The launcher did not send it; the kernel does when memory runs out (see dmesg).');
  }
  if (root.pid) lines.push(`  pid ${root.pid} on ${root.host}`);
  // What a runtime prints before it aborts is the reason.
  if ((!root.lastWords || isCrash(root.lastWords.error)) && root.tail.length > 0) {
    lines.push(`  last output of rank ${root.rank}:`);
    lines.push(...root.tail.slice(-reportedLines).map((line) => `    ${line}`));
  }
  if (root.logFile) lines.push(`  log: ${root.logFile}`);
  for (const [said, ranks] of grouped(outcomes.filter((outcome) => outcome !== root))) {
    lines.push(`  ${ranksOf(ranks)} ${said}`);
  }
  return lines.join('\n');
}

function ending({ exitCode, signal, pid }: RankOutcome): string {
  if (pid === undefined) return 'could not be started';
  return signal ?? `exit code ${exitCode}`;
}

function errorLines(error: ReportedError): string[] {
  const at = firstUserFrame(error.stack);
  const [first, ...rest] = `${error.name}: ${error.message}`.split('\n');
  const lines = [`  ${first}${at ? `   ${at}` : ''}`, ...rest.map((line) => `  ${line}`)];
  const remedy = remedies[`${error.fields.code}`];
  if (remedy) lines.push(`  ${remedy}`);
  if (isCrash(error)) lines.push(...error.stack.split('\n').filter(Boolean).slice(0, reportedFrames));
  if (error.cause) lines.push(`  caused by ${error.cause.name}: ${error.cause.message.split('\n')[0]}`);
  return lines;
}

/**
 * "train.ts:88": the innermost frame outside node and node_modules, relative to the working directory. What was built
 * into a `dist` folder is the user's own at most when nothing else is.
 */
export function firstUserFrame(stack: string): string | null {
  const frames = stack.split('\n').flatMap((line) => {
    const match = /^\s+at (?:async )?(?:.*\()?((?:file:\/\/)?\/.*):(\d+):\d+\)?$/.exec(line);
    if (!match || match[1]!.includes('/node_modules/')) return [];
    const file = match[1]!.startsWith('file:') ? fileURLToPath(match[1]!) : match[1]!;
    return [{ file, line: match[2] }];
  });
  const frame = frames.find(({ file }) => !file.includes('/dist/')) ?? frames[0] ?? pythonFrame(stack);
  if (!frame) return null;
  const near = relative('', frame.file);
  return `${near.startsWith('..') || isAbsolute(near) ? frame.file : near}:${frame.line}`;
}

/** Python's innermost frame comes last. */
function pythonFrame(stack: string): { file: string; line: string | undefined } | undefined {
  const frames = [...stack.matchAll(/^\s*File "(\/[^"]+)", line (\d+)/gm)];
  const own = frames.filter(([, file]) => !/\/(site|dist)-packages\//.test(file!));
  const [, file, line] = own.at(-1) ?? frames.at(-1) ?? [];
  return file === undefined ? undefined : { file, line };
}

/** Told by the native code that crashed; see crash-words.ts. */
function isCrash(error: ReportedError): boolean {
  return error.fields.native === true;
}

/** What became of the other ranks, with the ranks that share it; without those that were stopped. */
function grouped(others: readonly RankOutcome[]): Map<string, RankOutcome[]> {
  const groups = new Map<string, RankOutcome[]>();
  for (const outcome of others) {
    const error = outcome.lastWords?.error;
    const wasStopped = outcome.failedNs === null && outcome.exitCode !== 0;
    if (!error && wasStopped) continue;
    const said = error
      ? `reported ${error.fields.code ?? `${error.name}: ${error.message}`}`
      : `ended with ${ending(outcome)}`;
    groups.set(said, [...(groups.get(said) ?? []), outcome]);
  }
  return groups;
}

function ranksOf(outcomes: readonly RankOutcome[]): string {
  return `rank${outcomes.length > 1 ? 's' : ''} ${outcomes.map(({ rank }) => rank).join(', ')}`;
}
