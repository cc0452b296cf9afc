// Every error of this package, with all messages. A message has the form "<object>: <what happened>;
// <expected and got>. <next step>".

import { inspect } from 'node:util';

const mark = Symbol.for('ringwise.LaunchError');

/** The codes of a LaunchError. The README lists cause and next step of each. */
export type LaunchErrorCode =
  | 'ERR_LAUNCH_ARGUMENT'
  | 'ERR_LAUNCH_BUNDLED'
  | 'ERR_LAUNCH_NOT_INSTALLED'
  | 'ERR_LAUNCH_NO_SHELL'
  | 'ERR_LAUNCH_NO_TYPESCRIPT'
  | 'ERR_LAUNCH_PAGE'
  | 'ERR_LAUNCH_RANK_FAILED'
  | 'ERR_LAUNCH_SCRIPT'
  | 'ERR_LAUNCH_STORE'
  | 'ERR_LAUNCH_TIMEOUT';

interface Details {
  readonly cause?: unknown;
  readonly rank?: number;
  readonly exitCode?: number | null;
  readonly signal?: NodeJS.Signals | null;
}

/** The error type of this package. Branch on `code`; the text is for people. */
export class LaunchError extends Error {
  /** Name of the class. */
  override readonly name = 'LaunchError';
  /** Stable code, which programs may compare. */
  readonly code: LaunchErrorCode;
  /** The rank with the root cause; null if no single rank is the cause. */
  readonly rank: number | null;
  /** Exit code of that rank; null if a signal ended it. */
  readonly exitCode: number | null;
  /** The signal that ended that rank, or null. */
  readonly signal: NodeJS.Signals | null;

  constructor(code: LaunchErrorCode, message: string, details: Details = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.code = code;
    this.rank = details.rank ?? null;
    this.exitCode = details.exitCode ?? null;
    this.signal = details.signal ?? null;
  }

  get [mark](): true {
    return true;
  }

  /** Returns whether `value` is a LaunchError, also of another copy of this package. */
  static isInstance(value: unknown): value is LaunchError {
    return typeof value === 'object' && value !== null && mark in value;
  }
}

export const badArgument = (verb: string, name: string, expected: string, got: unknown, cause?: unknown) => {
  const reason = cause instanceof Error ? ` (${cause.message})` : '';
  return new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `${verb}: ${name} expects ${expected}, got ${inspect(got)}${reason}.`,
    cause === undefined ? {} : { cause },
  );
};

/** Without this error, each rank would start ranks of its own, without end. */
export const spawnedWhileLoading = (rank: string | undefined) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `spawn: called while rank ${rank} loads the module with its function. Put the call into ` +
      'if (process.env.RANK === undefined), because every rank loads this module too.',
  );

/** `problem` is the text that unknownOption() returned. */
export const badOptions = (verb: string, problem: string) =>
  new LaunchError('ERR_LAUNCH_ARGUMENT', `${verb}: ${problem}.`);

export const unknownWord = (verb: string, kind: string, word: string, nearest: string | undefined) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `${verb}: unknown ${kind} ${word}${nearest ? `; did you mean ${nearest}?` : '.'} See ${verb} --help.`,
  );

export const noWorkingDirectory = () =>
  new LaunchError(
    'ERR_LAUNCH_SCRIPT',
    'ringwise: the working directory has been deleted or moved. Change to a folder that exists, with cd.',
  );

export const missingValue = (flag: string, value: string) =>
  new LaunchError('ERR_LAUNCH_ARGUMENT', `ringwise run: ${flag} needs a value; expected ${flag} ${value}.`);

export const scriptAsValue = (flag: string, value: string, script: string) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: ${flag} needs a value before the script, got ${script}; expected ${flag} ${value} ${script}. ` +
      `If ${script} is the value, write ${flag}=${script}.`,
  );

export const valueWithoutEquals = (flag: string, value: string) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: ${flag} takes a value only as ${flag}=${value}, because the next word may be the script; ` +
      `got ${flag} ${value}.`,
  );

export const unexpectedValue = (flag: string, value: string) =>
  new LaunchError('ERR_LAUNCH_ARGUMENT', `ringwise run: ${flag} takes no value, got ${inspect(value)}.`);

export const unsupportedFlag = (what: string) =>
  new LaunchError('ERR_LAUNCH_ARGUMENT', `ringwise: this version does not have ${what} yet.`);

export const onlyElastic = (flag: string) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: ${flag} is for --elastic, which was not given. Without it, --shutdown-timeout is the time from SIGTERM ` +
      'to SIGKILL.',
  );

export const noModules = (flag: string) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: ${flag} names a module of Python, and ringwise run starts files. ` +
      'For a module of Python: --no-python python3 -u -m MODULE. For a program of an npm package: --no-python npx NAME.',
  );

export const useEnv = (flag: string) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: ${flag} is always on: ranks find LOCAL_RANK in the environment, and no --local-rank is added to the ` +
      "script's arguments. Leave it out.",
  );

export const notInstalled = (command: string, packageName: string) =>
  new LaunchError(
    'ERR_LAUNCH_NOT_INSTALLED',
    `${command}: this command belongs to ${packageName}, which is not installed here or is too old. ` +
      `Run: npm install ${packageName}`,
  );

export const noScript = () =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    'ringwise run: no script given; expected ringwise run [flags] script [arguments of the script].',
  );

export const noGpu = (command: string) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `${command}: --nproc-per-node gpu found no GPU (CUDA_VISIBLE_DEVICES, else /dev/nvidia<N>); expected at least one. ` +
      'Give a number, or use auto to fall back to the CPU cores.',
  );

export const tooManyForCores = (ranks: number, cores: number) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: --numa-binding exclusive has ${cores} core${cores === 1 ? '' : 's'} for ${ranks} ranks; expected at ` +
      'least one each. Start fewer ranks, or let them share by --numa-binding node.',
  );

export const tooManyForGpus = (ranks: number, gpus: number, env: NodeJS.ProcessEnv) => {
  const { CUDA_VISIBLE_DEVICES: visible } = env;
  const from = visible === undefined ? '' : ` (CUDA_VISIBLE_DEVICES=${visible})`;
  return new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: --virtual-local-rank has ${gpus} GPU${gpus === 1 ? '' : 's'}${from} for ${ranks} ranks; expected at ` +
      'least one each. Start one rank for each by --nproc-per-node gpu, or leave it out and let ranks share them.',
  );
};

export const noBinding = (why: string) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: --numa-binding needs the command taskset (package util-linux) and Linux; ${why}. Leave it out, or ` +
      'install that.',
  );

export const scriptNotFound = (verb: string, file: string, meant?: string) =>
  new LaunchError(
    'ERR_LAUNCH_SCRIPT',
    `${verb}: no file ${file}${meant ? ` (did you mean ${meant}?)` : ''}; expected one in JavaScript (.js, .mjs, .cjs, .jsx)` +
      `${verb === 'spawn' ? ' or' : ','} TypeScript (.ts, .mts, .cts, .tsx)${verb === 'spawn' ? '' : ' or Python (.py)'}. ` +
      'Nothing was started.',
  );

/** Error for `ringwise run node train.mjs`, as mpirun and srun have it. */
export const programAsScript = (verb: string, name: string) =>
  new LaunchError(
    'ERR_LAUNCH_SCRIPT',
    `${verb}: ${name} is a program, and there is no file of that name here; expected a script, which needs no interpreter before ` +
      `it, such as train.mjs. For a program, write --no-python ${name}. Nothing was started.`,
  );

export const scriptOutOfReach = (verb: string, file: string, cause: unknown) =>
  new LaunchError(
    'ERR_LAUNCH_SCRIPT',
    `${verb}: cannot look at ${file}; expected a file that this user may read, got ${(cause as Error).message}. ` +
      'Nothing was started.',
    { cause },
  );

export const scriptIsFolder = (verb: string, folder: string, meant: string | undefined) =>
  new LaunchError(
    'ERR_LAUNCH_SCRIPT',
    `${verb}: ${folder} is a folder; expected a script${meant ? `, such as ${meant}` : ''}. Nothing was started.`,
  );

export const programNotExecutable = (verb: string, file: string) =>
  new LaunchError(
    'ERR_LAUNCH_SCRIPT',
    `${verb}: ${file} may not be executed; expected a program. Run: chmod +x ${file}, or start it by its interpreter, ` +
      `such as --no-python sh ${file}. Nothing was started.`,
  );

export const programIsFolder = (verb: string, folder: string) =>
  new LaunchError(
    'ERR_LAUNCH_SCRIPT',
    `${verb}: ${folder} is a folder; expected a program. Nothing was started.`,
  );

export const programNotFound = (verb: string, name: string) =>
  new LaunchError(
    'ERR_LAUNCH_SCRIPT',
    `${verb}: no program ${name}; expected a file that may be executed${name.includes('/') ? '' : ', in a folder of PATH'}. ` +
      'Nothing was started.',
  );

export const noLogDir = (flag: string) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: ${flag} writes files; expected --log-dir DIR, which says where.`,
  );

export const noTemporaryFolder = (parent: string, cause: unknown) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: could not create a folder for the error files of the ranks in ${parent}: ${(cause as Error).message}. ` +
      'Set TMPDIR to a folder where it may write, or give --log-dir.',
    { cause },
  );

export const noSecret = (host: string) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: a job on several hosts, which meet at ${host}, needs a secret; expected RINGWISE_SECRET or ` +
      'RINGWISE_SECRET_FILE on each of them. For example, once: openssl rand -hex 32',
  );

export const noSecretFile = (file: string, cause: unknown) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: RINGWISE_SECRET_FILE names ${file}, which cannot be read or is empty. Write a long random text into it, the same on all hosts.`,
    { cause },
  );

export const anotherRun = (where: string, runId: string, found: string) =>
  new LaunchError(
    'ERR_LAUNCH_STORE',
    `ringwise run: at ${where} hosts meet for another job; expected --rdzv-id ${runId}, got ${found}. ` +
      'Give each job a port of its own.',
  );

/** `expected` are the flags of the launcher that keeps the store. */
export const otherRules = (where: string, expected: string, got: string) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: the hosts that meet at ${where} have other rules; expected ${expected}, as the launcher there has, ` +
      `got ${got}. Give all hosts the same --nnodes and --elastic.`,
  );

export const noMeeting = (where: string, cause: unknown) => {
  const { message, code } = cause as NodeJS.ErrnoException;
  // With these codes the store has answered, and its error names the next step.
  const isAnswered = code === 'ERR_STORE_AUTH' || code === 'ERR_STORE_BUSY';
  return new LaunchError(
    'ERR_LAUNCH_STORE',
    `ringwise run: could not join the job at ${where}: ${message}` +
      (isAnswered ? '' : ' Is the launcher running on that host, and is this the right address?'),
    { cause },
  );
};

export const storeLost = (where: string, cause: unknown) =>
  new LaunchError(
    'ERR_LAUNCH_STORE',
    `ringwise run: lost the launcher at ${where}, which keeps the job's store: the job cannot continue. The ranks of this ` +
      'host were stopped. Start it again on all hosts; training resumes from its last snapshot.',
    { cause },
  );

/** Returns whether the error means that a launcher has lost the job's store. */
export const isStoreLost = (error: unknown): boolean =>
  error instanceof LaunchError && error.code === 'ERR_LAUNCH_STORE';

export const jobIsElastic = (where: string) =>
  new LaunchError(
    'ERR_LAUNCH_ARGUMENT',
    `ringwise run: the job at ${where} is elastic; expected --elastic on this host as well. Give all hosts the same flags.`,
  );

export const noTypeScript = (file: string) =>
  new LaunchError(
    'ERR_LAUNCH_NO_TYPESCRIPT',
    `Node ${process.versions.node} cannot run ${file} by itself; expected Node 22.18 or newer for plain .ts, ` +
      'or tsx beside the script. Run: npm install --save-dev tsx',
  );

export const isBundled = (path: string) =>
  new LaunchError(
    'ERR_LAUNCH_BUNDLED',
    `spawn: there is no file ${path}, which ranks start with. This code is probably part of a bundle: mark ` +
      'ringwise and @ringwise/* as external in the bundler, and install them beside the program (docs/install.md).',
  );

export const noShell = (cause: unknown) =>
  new LaunchError(
    'ERR_LAUNCH_NO_SHELL',
    'launch: could not start /bin/sh, which ends the ranks if this process is killed. Install a POSIX shell there.',
    { cause },
  );

/** The settings of the user that determine the address of the store. */
export interface StoreSettings {
  readonly backend: 'static' | 'c10d';
  readonly maxNodes: number;
}

export const storeFailed = (
  host: string,
  port: number,
  cause: unknown,
  { backend, maxNodes }: StoreSettings = { backend: 'static', maxNodes: 1 },
) => {
  const flag = backend === 'c10d' ? 'port in --rdzv-endpoint' : '--master-port';
  const orFree = backend === 'c10d' ? 'or 0 there' : 'or none';
  const next =
    backend === 'c10d'
      ? 'Give --rdzv-endpoint an address of this host and a port that may be opened here.'
      : 'Give --master-addr an address of this host, and --master-port a port that may be opened here.';
  const rest = maxNodes > 1 ? ', the same on all hosts' : `, ${orFree}: then a free one is taken`;
  return new LaunchError(
    'ERR_LAUNCH_STORE',
    isInUse(cause)
      ? `ringwise run: port ${port} of ${host} is in use. Give another ${flag}${rest}.`
      : `ringwise run: could not host the store on ${host} port ${port}: ${(cause as Error).message} ${next}`,
    { cause },
  );
};

export const pageFailed = (host: string, port: number, cause: unknown) =>
  new LaunchError(
    'ERR_LAUNCH_PAGE',
    `ringwise run: could not serve the live page on ${host} port ${port}: ${(cause as Error).message}. ` +
      'Give another --ui=HOST:PORT; port 0 takes a free one.',
    { cause },
  );

export const timedOut = (timeoutMs: number) =>
  new LaunchError(
    'ERR_LAUNCH_TIMEOUT',
    `spawn: the ranks were stopped after ${timeoutMs} ms, their timeoutMs; expected all to return by then.`,
  );

export const rankFailed = (report: string, details: Details) =>
  new LaunchError('ERR_LAUNCH_RANK_FAILED', report, details);

function isInUse(error: unknown): boolean {
  for (let e = error as NodeJS.ErrnoException | undefined; e; e = e.cause as typeof e) {
    if (e.code === 'EADDRINUSE') return true;
  }
  return false;
}
