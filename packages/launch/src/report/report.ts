// Finds the root cause of a failed job and formats the report. The root cause is the first failure that is
// not secondary. Failure times are read when the rank had an uncaught error, or else when the launcher saw it
// end; all are on the monotonic clock of one host (toSent() of messages.ts converts those of other hosts).

import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RankOutcome } from '../agent/rank-process.ts';
import { manifest } from '../package-files.ts';
import { heapWasFull, lastLines, syntaxErrorPlace } from './last-lines.ts';
import { isSecondary } from './last-words.ts';
import type { ReportedError } from './words.ts';

/** Advice for errors whose messages give none, by error code. */
const remedies: Readonly<Record<string, string>> = {
  ERR_REQUIRE_ASYNC_MODULE: waysOut('Top-level await'),
  ERR_AMBIGUOUS_MODULE_SYNTAX: waysOut('Top-level await'),
  EMFILE: 'No file descriptors are left. Raise their limit before the command: ulimit -n 4096.',
  ERR_UNKNOWN_FILE_EXTENSION:
    'Node.js runs .js, .mjs, .cjs and .ts files. Start another program by --no-python: ringwise run --no-python ./program.',
  ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX:
    'Node.js only removes types. For what it would have to compile, install tsx and set NODE_OPTIONS="--import tsx".',
};
/**
 * Advice by the message of an error without a helpful code: a file with the syntax of ES modules that Node.js, or tsx,
 * has read as CommonJS.
 */
const remediesByMessage: readonly (readonly [RegExp, string])[] = [
  [/Top-level await is currently not supported with the "cjs" output format/, waysOut('Top-level await')],
  [/^await is only valid in async functions and the top level bodies of modules/, waysOut('Top-level await')],
  [/^Cannot use import statement outside a module/, waysOut('`import`')],
  [/^Unexpected token 'export'/, waysOut('`export`')],
  [/^Cannot use 'import\.meta' outside a module/, waysOut('`import.meta`')],
  [
    /^The requested module 'ringwise' does not provide an export named/,
    'The entry ringwise has the packages as namespaces. Import from the entry of a package: ringwise/collectives has init.',
  ],
  [
    /^The requested module '(?:@ringwise|ringwise)\/tensor[^']*' does not provide an export named/,
    'Layers are in @ringwise/tensor/nn, optimizers, schedules and clipGradNorm in /optim, files in /safetensors and /npy.',
  ],
];
/** Maximum characters of the error of a rank that is not the root cause. */
const otherLength = 300;
/** Maximum number of stack frames in a report. */
const reportedFrames = 12;

/** Returns the first failure that is not secondary; otherwise the first failure; null if no rank failed. */
export function rootCause(outcomes: readonly RankOutcome[]): RankOutcome | null {
  const failed = outcomes
    .filter((outcome) => outcome.failedNs !== null)
    .sort((a, b) => (a.failedNs! < b.failedNs! ? -1 : 1));
  return failed.find(({ lastWords }) => !lastWords || !isSecondary(lastWords.error)) ?? failed[0] ?? null;
}

/** Returns the launcher's exit code for a root cause: the rank's exit code, or 128 + the number of its signal. */
export function exitCodeOf(root: RankOutcome): number {
  return root.signal ? exitCodeOfSignal(root.signal) : (root.exitCode ?? 1);
}

export const exitCodeOfSignal = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/** Exit code of Node.js if nothing can settle a promise that the main module awaits. */
const unsettledAwait = 13;

/** Formats the report of the root cause, without a final line break. */
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
  if (root.lastWords) lines.push(...errorLines(root.lastWords.error, placeOf(root)));
  // If the rank had reported an error, the launcher may have sent SIGKILL because the rank did not end.
  if (root.signal === 'SIGKILL' && !root.lastWords) {
    lines.push('  The launcher did not send it; the kernel does when memory runs out (see dmesg).');
  }
  // Node.js prints nothing else in this case.
  if (root.exitCode === unsettledAwait && !root.lastWords) {
    lines.push(
      '  Node.js ends with 13 when a top-level await waits for a promise that nothing is left to settle: no timer, socket or',
      '  other work. Look for a promise that is not resolved on every path, such as one whose callback is never called.',
    );
  }
  const { exitCode } = root;
  if (exitCode !== null && exitCode >= 160 && exitCode <= 192 && !root.lastWords) {
    const number = exitCode - 128;
    lines.push(
      `  ${exitCode} is 128 + ${number}: signal ${number}, a real-time signal without a name in Node.js, ended the rank,`,
    );
    lines.push('  if the program did not exit with this code itself.');
  }
  if (heapWasFull(root.tail)) {
    lines.push(
      '  JavaScript objects took all of the heap: hold fewer of them, or raise NODE_OPTIONS=--max-old-space-size=MB.',
    );
  }
  if (root.pid) lines.push(`  pid ${root.pid} on ${root.host}`);
  // A runtime prints the reason before it aborts.
  if ((!root.lastWords || isCrash(root.lastWords.error)) && root.tail.length > 0) {
    lines.push(`  last output of rank ${root.rank}:`);
    lines.push(...lastLines(root.tail).map((line) => `    ${line}`));
  }
  if (root.logFile) lines.push(`  log: ${root.logFile}`);
  for (const [said, ranks] of grouped(outcomes.filter((outcome) => outcome !== root))) {
    lines.push(`  ${ranksOf(ranks)} ${said}`);
  }
  return lines.join('\n');
}

/** Describes the end of a failed rank, such as "exit code 1" or "SIGKILL". */
export function ending({ exitCode, signal, pid }: RankOutcome): string {
  if (pid === undefined) return 'could not be started';
  return signal ?? `exit code ${exitCode}`;
}

function errorLines(error: ReportedError, at: string | null): string[] {
  const [first, ...rest] = `${error.name}: ${error.message}`.split('\n');
  const lines = [`  ${first}${at ? `   ${at}` : ''}`, ...rest.map((line) => `  ${line}`)];
  const remedy = remedyOf(error);
  if (remedy) lines.push(`  ${remedy}`);
  if (isCrash(error)) lines.push(...error.stack.split('\n').filter(Boolean).slice(0, reportedFrames));
  // Node.js has not printed the stack of an error that a peer caused; see last-words.ts.
  if (error.fields.secondary === true)
    lines.push(
      ...userFrames(error.stack)
        .map(({ text }) => text)
        .slice(0, reportedFrames),
    );
  if (error.cause) lines.push(`  caused by ${error.cause.name}: ${error.cause.message.split('\n')[0]}`);
  return lines;
}

function waysOut(what: string): string {
  return (
    `${what} needs an ES module. Two ways out: name the script .mjs (or .mts), or name it .js (or .ts) and put ` +
    '"type": "module" into the nearest package.json.'
  );
}

/** Node's message for an import of a name in snake_case from one of our packages. */
const foreignImport =
  /^The requested module '(?:@ringwise\/|ringwise)[^']*' does not provide an export named '(\w*_\w*)'/;

function remedyOf({ message, fields }: ReportedError): string | undefined {
  const [, name] = foreignImport.exec(message) ?? [];
  if (name) {
    const camel = name.replace(/_+$/, '').replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    return `Names are in camelCase here, such as ${camel}; docs/from-pytorch.md has PyTorch's names and ours.`;
  }
  return remedies[`${fields.code}`] ?? remediesByMessage.find(([pattern]) => pattern.test(message))?.[1];
}

/** The folder that contains our packages side by side in the repository; in node_modules it does not matter. */
const packagesFolder = dirname(dirname(dirname(fileURLToPath(manifest))));

/** Returns whether a file is code of one of our packages, outside node_modules. */
function isOurs(file: string): boolean {
  const [, , folder] = relative(packagesFolder, file).split(sep);
  return !relative(packagesFolder, file).startsWith('..') && (folder === 'src' || folder === 'dist');
}

/**
 * Returns the innermost frame outside node, node_modules and our packages, such as "train.ts:88", relative to the
 * working directory. Frames in a `dist` folder count only if there are no others.
 */
export function firstUserFrame(stack: string): string | null {
  const frames = userFrames(stack);
  const frame = frames.find(({ file }) => !file.includes('/dist/')) ?? frames[0] ?? pythonFrame(stack);
  return frame ? shownPlace(frame) : null;
}

/**
 * Returns the place in the program at which the error that ended a rank was thrown, or the place of its syntax error;
 * null if it is not known.
 */
export function placeOf({ lastWords, tail }: RankOutcome): string | null {
  if (!lastWords) return null;
  const { name, stack } = lastWords.error;
  const at = firstUserFrame(stack);
  if (at !== null || name !== 'SyntaxError') return at;
  // Node.js adds the place to the stack for CommonJS modules only, and prints it for all.
  const [, file, line] = syntaxErrorPlace([...stack.split('\n'), ...tail]) ?? [];
  const path = file === undefined ? null : fileOf(file);
  return path === null ? null : shownPlace({ file: path, line });
}

function shownPlace({ file, line }: Pick<Frame, 'file' | 'line'>): string {
  const near = relative('', file);
  return `${near.startsWith('..') || isAbsolute(near) ? file : near}:${line}`;
}

interface Frame {
  readonly file: string;
  readonly line: string | undefined;
  /** The line of the stack. */
  readonly text: string;
}

function userFrames(stack: string): Frame[] {
  return stack.split('\n').flatMap((text) => {
    const frame =
      /^\s+at (?:async )?(?:.*\()?((?:file:\/\/)?\/.*):(\d+):\d+\)?$/.exec(text) ?? callSite(text);
    if (!frame || frame[1]!.includes('/node_modules/')) return [];
    const file = fileOf(frame[1]!);
    return file === null || isOurs(file) ? [] : [{ file, line: frame[2], text }];
  });
}

/** Returns the path of a frame's file; null for a URL without one, as a program may put any text into a stack. */
function fileOf(shown: string): string | null {
  try {
    return resolve(shown.startsWith('file:') ? fileURLToPath(shown) : shown);
  } catch {
    return null;
  }
}

/**
 * Matches "    at train.ts:57", the call site of a collective, as @ringwise/collectives adds it, optionally followed by
 * "(the line of an earlier call like this one)". A file outside the working directory has only a name, with which the
 * file cannot be found.
 */
function callSite(text: string): RegExpExecArray | null {
  const match = /^\s+at ([^\s():]+\.[cm]?[jt]sx?):(\d+)(?: \([^)]*\))?$/.exec(text);
  return match !== null && existsSync(match[1]!) ? match : null;
}

/** Returns the innermost frame of a Python stack, which lists it last; prefers frames outside site-packages. */
function pythonFrame(stack: string): { file: string; line: string | undefined } | undefined {
  const frames = [...stack.matchAll(/^\s*File "(\/[^"]+)", line (\d+)/gm)];
  const own = frames.filter(([, file]) => !/\/(site|dist)-packages\//.test(file!));
  const [, file, line] = own.at(-1) ?? frames.at(-1) ?? [];
  return file === undefined ? undefined : { file, line };
}

/** Tells whether the error is a native crash (see crash-words.ts). */
function isCrash(error: ReportedError): boolean {
  return error.fields.native === true;
}

/**
 * Returns an error's code, or its name if the code is a number, such as that of a DOMException, which says nothing
 * without the message.
 */
const shortNameOf = ({ name, message, fields: { code } }: ReportedError): string =>
  typeof code === 'string' && code !== '' ? code : firstLine(`${name}: ${message}`);

/** Groups the other ranks by the text that describes their end. Leaves out ranks that were stopped. */
function grouped(others: readonly RankOutcome[]): Map<string, RankOutcome[]> {
  const groups = new Map<string, RankOutcome[]>();
  for (const outcome of others) {
    const error = outcome.lastWords?.error;
    const wasStopped = outcome.failedNs === null && outcome.exitCode !== 0;
    if (!error && wasStopped) continue;
    const at = placeOf(outcome);
    const said = error
      ? `reported ${shortNameOf(error)}${at ? `   ${at}` : ''}`
      : `ended with ${ending(outcome)}`;
    groups.set(said, [...(groups.get(said) ?? []), outcome]);
  }
  return groups;
}

/** Returns the first line of a text, shortened, because a report may contain an error of each of many ranks. */
function firstLine(text: string): string {
  const [line] = text.split('\n', 1);
  return line!.length < text.length || line!.length > otherLength ? `${line!.slice(0, otherLength)} …` : text;
}

function ranksOf(outcomes: readonly RankOutcome[]): string {
  return `rank${outcomes.length > 1 ? 's' : ''} ${outcomes.map(({ rank }) => rank).join(', ')}`;
}
