// What spawn() and startProcesses() take, and its checks: before anything is started, so that no rank runs in vain.

import { constants } from 'node:os';
import { serialize } from 'node:v8';
import { badArgument, badOptions } from '../errors.ts';
import { unknownOption } from '../option-names.ts';

export interface StartOptions {
  /** How many ranks. */
  readonly nprocs: number;
  /** Passed after the rank, by structured clone. */
  readonly args?: readonly unknown[];
  /** Added to this process's variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Which export of the module to call. Default: 'default'. */
  readonly exportName?: string;
  /**
   * Ranks are worker threads of this process instead of processes. They start sooner and may share memory; a native
   * crash of one ends all, and to be stopped they get no SIGTERM. Default: false.
   */
  readonly threads?: boolean;
}

export interface SpawnOptions extends StartOptions {
  /** Stops the ranks after this time; ERR_LAUNCH_TIMEOUT. Default: no limit. */
  readonly timeoutMs?: number;
}

const optionNames = ['nprocs', 'args', 'env', 'exportName', 'threads'];
/** What PyTorch's launchers call the same. */
const renamed = {
  nproc: 'nprocs',
  nproc_per_node: 'nprocs',
  num_processes: 'nprocs',
  world_size: 'nprocs',
  timeout: 'timeoutMs',
};
/** What setTimeout() can wait. */
export const longestMs = 2 ** 31 - 1;

/** `also`: names of options that only this call has. Throws ERR_LAUNCH_ARGUMENT. */
export function checkOptions(verb: string, options: StartOptions, also: readonly string[] = []): void {
  const problem = unknownOption(options ?? null, [...optionNames, ...also], renamed);
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

/** A signal that does not exist would end nothing. */
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

// Sending would fail with some ranks running and others not. Only threads share memory.
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
