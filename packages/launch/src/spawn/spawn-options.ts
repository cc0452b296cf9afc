// Options of spawn() and startProcesses(), and their checks, which run before any rank is started.

import { constants } from 'node:os';
import { serialize } from 'node:v8';
import { badArgument, badOptions } from '../errors.ts';
import { unknownOption } from '../option-names.ts';

/** Options of startProcesses(). */
export interface StartOptions {
  /** Number of ranks. */
  readonly nprocs: number;
  /** Arguments after the rank, passed by structured clone. */
  readonly args?: readonly unknown[];
  /** Variables to add to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Name of the export to call. Default: 'default'. */
  readonly exportName?: string;
  /**
   * Runs ranks as worker threads of this process instead of processes. They start faster and may share memory, but a
   * native crash of one ends all, and they are stopped without a SIGTERM. Default: false.
   */
  readonly threads?: boolean;
}

/** Options of spawn(). */
export interface SpawnOptions extends StartOptions {
  /**
   * Milliseconds after which the ranks are stopped and spawn() rejects with ERR_LAUNCH_TIMEOUT. Default: no
   * limit.
   */
  readonly timeoutMs?: number;
}

const optionNames = ['nprocs', 'args', 'env', 'exportName', 'threads'];
/** Names of these options in PyTorch's launchers. */
const renamed = {
  nproc: 'nprocs',
  nproc_per_node: 'nprocs',
  num_processes: 'nprocs',
  world_size: 'nprocs',
  timeout: 'timeoutMs',
};
/** The longest delay of setTimeout() in milliseconds. */
export const longestMs = 2 ** 31 - 1;

/** Checks the options. `also` names further options of the call. Throws ERR_LAUNCH_ARGUMENT. */
export function checkOptions(verb: string, options: StartOptions, also: readonly string[] = []): void {
  if (typeof options !== 'object' || options === null)
    throw badArgument(verb, 'options', 'an object such as { nprocs: 2 }', options);
  const problem = unknownOption(options, [...optionNames, ...also], renamed);
  if (problem !== null) throw badOptions(verb, problem);
  const { nprocs, args = [], env = {}, exportName = '', threads = false } = options;
  checkNumber(verb, 'nprocs', nprocs, 65_536);
  if (typeof exportName !== 'string')
    throw badArgument(verb, 'exportName', 'the name of an export', exportName);
  if (typeof threads !== 'boolean') throw badArgument(verb, 'threads', 'true or false', threads);
  checkEnv(verb, env);
  checkArgs(verb, args, threads);
}

export function checkNumber(verb: string, name: string, value: number, max: number, min = 1): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw badArgument(verb, name, `a whole number from ${min} to ${max}`, value);
}

/** Throws if `signal` is not the name of a signal, because nothing would be stopped. */
export function checkSignal(verb: string, signal: unknown): void {
  if (typeof signal === 'string' && Object.hasOwn(constants.signals, signal)) return;
  throw badArgument(verb, 'signal', 'the name of a signal, such as SIGTERM', signal);
}

function checkEnv(verb: string, env: unknown): void {
  const isObject = typeof env === 'object' && env !== null && !Array.isArray(env);
  if (!isObject) throw badArgument(verb, 'env', 'an object of strings', env);
  for (const [name, value] of Object.entries(env)) {
    if (typeof value !== 'string' && value !== undefined)
      throw badArgument(verb, `env.${name}`, 'a string', value);
  }
}

// Checked here because sending would fail only after some ranks have started. Only threads can share memory.
function checkArgs(verb: string, args: readonly unknown[], threads: boolean): void {
  if (!Array.isArray(args)) throw badArgument(verb, 'args', 'an array, one argument each', args);
  try {
    if (threads) structuredClone(args);
    else serialize(args);
  } catch (cause) {
    throw badArgument(verb, 'args', 'values that structured clone can copy', args, cause);
  }
}

export function moduleUrl(module: URL | string): URL {
  const url = URL.canParse(String(module)) ? new URL(module) : null;
  if (url?.protocol === 'file:') return url;
  throw badArgument(
    'spawn',
    'module',
    "a file URL, as new URL('./worker.ts', import.meta.url)",
    String(module),
  );
}
